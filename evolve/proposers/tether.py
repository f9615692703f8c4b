"""Starts a program that ends with the process that wanted it, where the kernel can see to that (Linux).

Run as a script, with nothing but the standard library: python tether.py PARENT PROGRAM ARGUMENT...
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main(parent: int, command: list[str]) -> None:
    """Become the program. It is never begun where the parent has ended already."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            sys.exit(1)
    os.execvp(command[0], command)  # noqa: S606  no shell is wanted


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
