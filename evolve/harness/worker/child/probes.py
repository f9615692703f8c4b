"""The self-test: tries, from inside a worker, what a hostile rule would try, and says what worked."""

import errno
import mmap
import os
import socket
import sys
from collections.abc import Callable

from evolve.harness.worker.child.sandbox import MEMORY_BYTES

Probe = Callable[[], object]


FILE = "/private/etc/hosts" if sys.platform == "darwin" else __file__
"""A file that everybody may read; on macOS one that the profile around us does not name, as it names our own."""


def _open_file() -> None:
    os.close(os.open(FILE, os.O_RDONLY))


def _inet(kind: socket.SocketKind) -> None:
    with socket.socket(socket.AF_INET, kind) as reaching:
        reaching.connect(("127.0.0.1", 9))


def _refused_counts_as_reached(probe: Probe) -> Probe:
    """Wrap a network probe: an answer of the network means that the network was reached."""

    def reaching() -> None:
        try:
            probe()
        except ConnectionRefusedError:
            return

    return reaching


def _fork() -> None:
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)


def _run_program() -> None:
    try:
        os.execv("/nonexistent/program", ["program"])  # noqa: S606 - must fail either way
    except OSError as error:
        if error.errno != errno.ENOENT:
            raise


def _allocate() -> None:
    mmap.mmap(-1, 2 * MEMORY_BYTES).close()


FILES: dict[str, Probe] = {"open a file": _open_file}
ALL: dict[str, Probe] = {
    **FILES,
    "stat a file": lambda: os.stat(FILE),
    "list a directory": lambda: os.listdir("/"),
    "read the parent's memory": lambda: os.open(f"/proc/{os.getppid()}/mem", os.O_RDONLY),
    "signal the parent": lambda: os.kill(os.getppid(), 0),
    "reach TCP": _refused_counts_as_reached(lambda: _inet(socket.SOCK_STREAM)),
    "reach UDP": _refused_counts_as_reached(lambda: _inet(socket.SOCK_DGRAM)),
    "make a unix socket": lambda: socket.socketpair()[0].close(),
    "start a process": _fork,
    "run a program": _run_program,
    "allocate beyond the limit": _allocate,
}


def succeeding(probes: dict[str, Probe]) -> list[str]:
    """Return the names of the probes that work from here."""
    return [name for name, probe in probes.items() if _works(probe)]


def _works(probe: Probe) -> bool:
    try:
        probe()
    except (OSError, MemoryError):
        return False
    return True
