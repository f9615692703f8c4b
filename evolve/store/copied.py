"""Reads a ledger in a folder that takes no file. SQLite would make one beside a ledger in WAL mode to read it."""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

TRIES = 5


def wal_of(path: Path) -> Path:
    """Return the file in which the latest changes of a ledger may still be."""
    return path.with_name(f"{path.name}-wal")


def needs_copy(path: Path) -> bool:
    """Return whether a ledger cannot be read where it lies."""
    beside = (wal_of(path), path.with_name(f"{path.name}-shm"))
    return not os.access(path.parent, os.W_OK) and not all(file.exists() for file in beside)


def copy_in_memory(path: Path) -> sqlite3.Connection:
    """Return a copy of a ledger, its latest changes included, once nobody wrote in it while it was copied.

    Raises:
        OSError: somebody wrote each time, or a file cannot be read.
    """
    copied = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    try:
        with TemporaryDirectory(prefix="evolve-ledger-") as scratch:
            _copy_at_rest((path, wal_of(path)), Path(scratch))
            with closing(sqlite3.connect(Path(scratch, path.name))) as source:
                source.backup(copied)
    except BaseException:
        copied.close()
        raise
    return copied


def _copy_at_rest(files: Iterable[Path], folder: Path) -> None:
    for _ in range(TRIES):
        before = _states(files)
        for file in files:
            Path(folder, file.name).unlink(missing_ok=True)
            if before[file] is not None:
                shutil.copyfile(file, Path(folder, file.name))
        if _states(files) == before:
            return
    raise OSError(errno.EBUSY, "another program writes in it all the time; try again")


def _states(files: Iterable[Path]) -> dict[Path, tuple[int, int, int] | None]:
    """Return what changes when a file is written, replaced or removed."""
    found = {file: file.stat() if file.exists() else None for file in files}
    return {file: state and (state.st_ino, state.st_size, state.st_mtime_ns) for file, state in found.items()}
