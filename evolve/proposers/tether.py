"""Starts a program that ends with the process that wanted it, where the kernel can see to that (Linux).

Run as a script, with nothing but the standard library: python tether.py PARENT LC_CTYPE PROGRAM ARGUMENT...
The program finds signals and variables as if this had not run; an empty LC_CTYPE is none.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1
CANNOT_RUN = 126


def main(parent: int, locale: str, command: list[str]) -> None:
    """Become the program. It is never begun where the parent has ended already."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            sys.exit(1)
    for ignored_by_python in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(ignored_by_python, signal.SIG_DFL)
    os.environ.pop("LC_CTYPE", None)  # Python sets it for the C locale
    if locale:
        os.environ["LC_CTYPE"] = locale
    try:
        os.execvp(command[0], command)  # noqa: S606  no shell is wanted
    except OSError as error:
        print(f"{command[0]} cannot be started: {error.strerror}", file=sys.stderr)
        sys.exit(CANNOT_RUN)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3:])
