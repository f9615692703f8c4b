"""The two functions of the C library that shut a worker in, looked up and described once in the zygote.

What each worker would do anew costs it: code that runs for the first time after a fork, and data that is written to,
are pages to be mapped or copied.
"""

import ctypes
from functools import cache
from typing import Any

_LIBRARY = ctypes.CDLL(None, use_errno=True)


@cache
def _function(name: str) -> Any:
    """Return a function of the library, which on macOS has not both of them."""
    function = getattr(_LIBRARY, name)
    function.argtypes = [ctypes.c_long] * 4
    function.restype = {"prctl": ctypes.c_int, "syscall": ctypes.c_long}[name]
    return function


def prctl(option: int, value: int = 0, address: int = 0, *, why: str) -> None:
    """Set an attribute of this process.

    Raises:
        OSError: it was refused; the message is `why`.
    """
    if _function("prctl")(option, value, address, 0, 0) < 0:
        raise OSError(ctypes.get_errno(), why)


def system_call(number: int, first: int, second: int = 0, third: int = 0, *, why: str) -> int:
    """Make a system call that the library has no function for, and return what it returned.

    Raises:
        OSError: it was refused; the message is `why`.
    """
    result = int(_function("syscall")(number, first, second, third))
    if result < 0:
        raise OSError(ctypes.get_errno(), why)
    return result
