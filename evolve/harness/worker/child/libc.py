"""The C library, loaded once in the zygote: loading it anew would cost each worker a fifth of its start."""

import ctypes
from typing import Any

_LIBRARY = ctypes.CDLL(None, use_errno=True)


def call(name: str, *arguments: Any, why: str) -> int:
    """Call a function of the C library and return what it returned; whole numbers are passed as C longs.

    Raises:
        OSError: it returned less than zero; the message is `why`.
    """
    passed = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    result = int(getattr(_LIBRARY, name)(*passed))
    if result < 0:
        raise OSError(ctypes.get_errno(), why)
    return result
