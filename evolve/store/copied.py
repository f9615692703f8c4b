"""Reads a ledger in a folder that takes no file. SQLite would make one beside a ledger in WAL mode to read it."""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory


def wal_of(path: Path) -> Path:
    """Return the file in which the latest changes of a ledger may still be."""
    return path.with_name(f"{path.name}-wal")


def needs_copy(path: Path) -> bool:
    """Return whether a ledger cannot be read where it lies."""
    beside = (wal_of(path), path.with_name(f"{path.name}-shm"))
    return not os.access(path.parent, os.W_OK) and not all(file.exists() for file in beside)


def copy_in_memory(path: Path) -> sqlite3.Connection:
    """Return a copy of a ledger, its latest changes included; nothing of it stays on the disk.

    The ledger comes first: changes that a checkpoint takes from the other file meanwhile are missed, not mixed up.
    """
    copied = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    try:
        with TemporaryDirectory(prefix="evolve-ledger-") as scratch:
            for file in filter(Path.exists, (path, wal_of(path))):
                shutil.copyfile(file, Path(scratch, file.name))
            with closing(sqlite3.connect(Path(scratch, path.name))) as source:
                source.backup(copied)
    except BaseException:
        copied.close()
        raise
    return copied
