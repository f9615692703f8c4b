"""The two functions of the C library that shut a worker in, looked up and described once in the zygote.

What each worker would do anew costs it: code that runs for the first time after a fork, and data that is written to,
are pages to be mapped or copied.
"""

import ctypes

_LIBRARY = ctypes.CDLL(None, use_errno=True)
_PRCTL, _SYSCALL = _LIBRARY.prctl, _LIBRARY.syscall
_PRCTL.argtypes = [ctypes.c_int] + [ctypes.c_ulong] * 4
_SYSCALL.argtypes = [ctypes.c_long] * 4
_SYSCALL.restype = ctypes.c_long


def prctl(option: int, value: int = 0, address: int = 0, *, why: str) -> None:
    """Set an attribute of this process.

    Raises:
        OSError: it was refused; the message is `why`.
    """
    if _PRCTL(option, value, address, 0, 0) < 0:
        raise OSError(ctypes.get_errno(), why)


def system_call(number: int, first: int, second: int = 0, third: int = 0, *, why: str) -> int:
    """Make a system call that the library has no function for, and return what it returned.

    Raises:
        OSError: it was refused; the message is `why`.
    """
    result = int(_SYSCALL(number, first, second, third))
    if result < 0:
        raise OSError(ctypes.get_errno(), why)
    return result
