"""Turns a fresh fork into a worker that can only compute. Runs before any byte of a harness is read.

On Linux all layers are tested. On macOS `limit` and a group of its own apply, below the profile that the zygote was
started under (tier `seatbelt`), untested.
"""

import os
import resource
import signal
import sys

from evolve.harness.worker.child import landlock, libc, seccomp
from evolve.harness.worker.child.orders import Layers

INCOMING, OUTGOING = 3, 4
"""The only descriptors of a worker beside 0, 1 and 2, which lead to /dev/null."""

MEMORY_BYTES = 512 * 2**20
CPU_S = 60
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_NO_NEW_PRIVS = 1, 4, 38
IS_LINUX = sys.platform == "linux"


def detach(parent: int) -> None:
    """Leave the zygote's process group, and die with the zygote."""
    os.setsid()
    if IS_LINUX:
        _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        _prctl(PR_SET_DUMPABLE, 0)
        if os.getppid() != parent:  # it died before the signal was asked for
            os._exit(1)


def keep_only(incoming: int, outgoing: int) -> None:
    """Give two pipes their numbers and close all else but 0, 1 and 2."""
    if outgoing == INCOMING:
        outgoing = os.dup(outgoing)
    os.dup2(incoming, INCOMING)
    os.dup2(outgoing, OUTGOING)
    os.closerange(OUTGOING + 1, 2**16)


def limit() -> None:
    """Bound memory, processor time, files and processes."""
    bounds = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_FSIZE: 0,
        resource.RLIMIT_NPROC: 0,
        resource.RLIMIT_NOFILE: 16,
        resource.RLIMIT_CPU: CPU_S,
    }
    if IS_LINUX:  # macOS refuses most values
        bounds[resource.RLIMIT_AS] = MEMORY_BYTES
    for kind, most in bounds.items():
        resource.setrlimit(kind, (most, most))


def restrict(layers: Layers) -> None:
    """Put on the kernel layers, weakest first.

    Raises:
        OSError: a layer was asked for and cannot be had.
    """
    if layers:
        _prctl(PR_SET_NO_NEW_PRIVS, 1)
    if Layers.LANDLOCK in layers:
        landlock.restrict()
    if Layers.SECCOMP in layers:
        seccomp.install()


def _prctl(option: int, value: int) -> None:
    libc.prctl(option, value, why=f"prctl {option} refused")
