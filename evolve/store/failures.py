"""What goes wrong in a ledger, in words: failures of the database and what mends them, a run that is not there."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from sqlalchemy.exc import DBAPIError

from evolve.disk import FULL, in_words, why_unwritable
from evolve.errors import UserError

MENDING = {
    sqlite3.SQLITE_BUSY: "another program holds it; close that program or wait, then run again",
    sqlite3.SQLITE_LOCKED: "another program holds it; close that program or wait, then run again",
    sqlite3.SQLITE_FULL: FULL,
    sqlite3.SQLITE_IOERR: "the disk does not read or write; check it, then run again",
    sqlite3.SQLITE_CORRUPT: "the file is damaged; restore it from a copy (traces and git are not affected)",
    sqlite3.SQLITE_NOTADB: "the file is no SQLite database; restore it from a copy or name another file",
    sqlite3.SQLITE_READONLY: "the file or its folder cannot be written; change the permissions",
    sqlite3.SQLITE_CANTOPEN: "the file cannot be opened; check that it exists and may be read and written",
}
LOCK_NOT_AVAILABLE = "55P03"
"""The state in which PostgreSQL gives up waiting for another program."""
_DISK_IN_THE_WAY = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY)
"""Errors behind which a disk may stand that is full or read-only; SQLite does not tell, so the disk is asked."""


def in_plain_words(error: DBAPIError, folder: Path | None) -> str:
    """Say what a failure means; `folder` is where the ledger lies, None for a server."""
    cause: Any = error.orig
    if getattr(cause, "sqlstate", None) == LOCK_NOT_AVAILABLE:
        return MENDING[sqlite3.SQLITE_BUSY]
    code = getattr(cause, "sqlite_errorcode", None)
    kind = code & 0xFF if code is not None else -1
    refusal = why_unwritable(folder) if folder and kind in _DISK_IN_THE_WAY else None
    return in_words(refusal) if refusal else MENDING.get(kind, str(cause))


def no_run(run_id: str) -> UserError:
    """Return the error of a run that is not on record."""
    return UserError(f"the ledger has no run {run_id!r}; `evolve runs list` shows those it has")
