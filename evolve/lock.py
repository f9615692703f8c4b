"""One lock per workspace: two evolve processes never write to the same ledger, refs and traces.

It is a lock of the operating system, so `kill -9` releases it. Its file says who holds it.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from types import TracebackType

from filelock import FileLock, Timeout

from evolve.errors import WorkspaceBusy


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
        self._lock = FileLock(path, is_singleton=False, thread_local=False)
        self._held_since: float | None = None

    @property
    def held_since(self) -> float | None:
        """When the lock was taken, in seconds since the epoch; None while it is not held."""
        return self._held_since

    def __enter__(self) -> WorkspaceLock:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._lock.acquire(timeout=self._wait_s)
        except Timeout as error:
            raise WorkspaceBusy(
                f"workspace {self._path.parent} is in use by {self._holder()}; wait or stop it"
            ) from error
        self._held_since = time.time()
        self._sign()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._held_since = None
        self._signature.unlink(missing_ok=True)
        self._lock.release()

    @property
    def _signature(self) -> Path:
        return self._path.with_name(self._path.name + ".holder")

    def _sign(self) -> None:
        """Write the holder's name whole or not at all: others read it while we write."""
        draft = self._signature.with_name(f"{self._signature.name}.{os.getpid()}")
        draft.write_text(json.dumps({"pid": os.getpid(), "since": self._held_since}))
        draft.replace(self._signature)

    def _holder(self) -> str:
        try:
            holder = json.loads(self._signature.read_text())
            since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(holder["since"]))
            return f"process {holder['pid']} since {since}"
        except (OSError, ValueError, KeyError, TypeError):
            return "another process"
