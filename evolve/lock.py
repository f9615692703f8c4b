"""One lock per workspace: two evolve processes never write to the same ledger, refs and traces.

It is a lock of the operating system (flock), so `kill -9` releases it; a git that outlives its killed evolve
inherits it, and has it until it ends. A file beside it says who holds it.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType

from evolve.errors import WorkspaceBusy
from evolve.figures import moment

POLL_S = 0.02


@contextmanager
def alone_in(folder: Path, *, wait_s: float = 10.0) -> Iterator[None]:
    """Be the only one of those who ask for this that makes something in a folder; it leaves no file behind.

    A folder that may be passed but not read cannot be held: there nobody is kept out.

    Raises:
        WorkspaceBusy: another process holds the folder all the while.
    """
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    except PermissionError:
        yield
        return
    try:
        _lock(descriptor, wait_s, lambda: f"another process holds {folder}; try again when it is done, or name another")
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int, wait_s: float, busy: Callable[[], str]) -> None:
    """Lock an open file for this process alone.

    Raises:
        WorkspaceBusy: another has it all the while; in the words of `busy`.
    """
    deadline = time.monotonic() + wait_s
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if time.monotonic() >= deadline:
                raise WorkspaceBusy(busy()) from error
        time.sleep(POLL_S)


def is_held(path: Path) -> bool:
    """Tell whether anybody has a workspace's lock alone; a file that cannot be asked counts as free.

    It is asked by sharing the lock for a moment, which keeps nobody waiting for longer.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return False


def run_under_way(path: Path) -> str | None:
    """Return the run that the holder of a workspace's lock plays; None where it plays none, or nobody holds it."""
    if not is_held(path):
        return None
    with suppress(OSError, ValueError, AttributeError):
        found = json.loads(_signature_of(path).read_text()).get("run")
        return found if isinstance(found, str) else None
    return None


class WorkspaceLock:
    """The right to write in a workspace, held inside a `with` block.

    Args:
        path: the lock file; the holder's name stands beside it in `<path>.holder`.
        wait_s: how long to wait for another holder; a killed one may take a moment to be gone.

    Raises:
        WorkspaceBusy: another process holds it; the message names that process.
    """

    def __init__(self, path: Path, *, wait_s: float = 1.0) -> None:
        self._path = path
        self._wait_s = wait_s
        self._descriptor: int | None = None
        self._held_since: float | None = None

    @property
    def descriptors(self) -> tuple[int, ...]:
        """The open lock file, for a child process to inherit: the lock is free when the last holder has closed it."""
        return () if self._descriptor is None else (self._descriptor,)

    def plays(self, run_id: str) -> None:
        """Write down which run the holder plays."""
        self._sign(run=run_id)

    @property
    def held_since(self) -> float | None:
        """When the lock was taken, in seconds since the epoch; None while it is not held."""
        return self._held_since

    def __enter__(self) -> WorkspaceLock:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._descriptor = self._acquire()
        self._held_since = time.time()
        try:
            self._sign()
        except BaseException:
            self._release()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._signature.unlink(missing_ok=True)
        self._release()

    def _release(self) -> None:
        self._held_since = None
        if self._descriptor is not None:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)  # also for children that have it still
            os.close(self._descriptor)
            self._descriptor = None

    def _acquire(self) -> int:
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            _lock(descriptor, self._wait_s, self._busy)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    @property
    def _signature(self) -> Path:
        return _signature_of(self._path)

    def _sign(self, **more: str) -> None:
        """Write the holder's name whole or not at all: others read it while we write."""
        draft = self._signature.with_name(f"{self._signature.name}.draft")
        draft.write_text(json.dumps({"pid": os.getpid(), "since": self._held_since, **more}))
        draft.replace(self._signature)

    def _busy(self) -> str:
        return f"workspace {self._path.parent} is in use by {self._holder()}; wait or stop it"

    def _holder(self) -> str:
        try:
            holder = json.loads(self._signature.read_text())
            since = moment(datetime.fromtimestamp(holder["since"], UTC).isoformat())
            return f"process {holder['pid']} since {since}"
        except (OSError, ValueError, KeyError, TypeError):
            return "another process"


def _signature_of(path: Path) -> Path:
    return path.with_name(path.name + ".holder")
