"""A small file beside an SQLite ledger that says how many changes it has taken, so that a loss shows.

The ledger is a file and a `-wal` file; without the second, or with an older copy of the first, it opens as if nothing
were missing. The number here is written after each commit: a ledger that knows of fewer has lost some.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from sqlmodel import Session

from evolve.errors import StoreError
from evolve.store.tables import InfoRow

_KEY = "changes"
_WIDTH = 20


class Mark:
    """The number of changes beside a ledger at `path`; None for a database server, which needs none."""

    def __init__(self, path: Path | None) -> None:
        self._ledger = path
        self._file = path.with_name(f"{path.name}-changes") if path else None

    def require_ledger(self) -> None:
        """Refuse to begin a new ledger where one was.

        Raises:
            StoreError: the ledger was removed.
        """
        if self._ledger and not self._ledger.exists() and (known := self._read()):
            raise StoreError(
                f"ledger {self._ledger} is gone, and it had taken {known} changes: put it back, with its -wal file; "
                f"to begin anew, remove {self._file} too (runs, verdicts and looks are forgotten then)"
            )

    def expected(self) -> int:
        """Return how many changes the ledger must know of; to be asked before the ledger is read."""
        return self._read()

    def require(self, session: Session, expected: int) -> None:
        """Compare the ledger with what is expected of it.

        Raises:
            StoreError: it has lost changes.
        """
        lost = expected - _known(session)
        if lost > 0:
            raise StoreError(
                f"ledger {self._ledger} has lost its last {lost} changes: its -wal file was removed, or it is an older "
                f"copy; put both files back as they were. If you restored a copy on purpose, remove {self._file}"
            )

    def count(self, session: Session) -> int:
        """Count the change that a session is about to commit; return its number."""
        number = _known(session) + 1
        session.merge(InfoRow(key=_KEY, value=str(number)))
        return number

    def rows_changed(self, session: Session) -> int:
        """Return how many rows this connection has changed; always 0 on a server."""
        if self._file is None:
            return 0
        connection: Any = session.connection().connection.dbapi_connection
        total: int = connection.total_changes
        return total

    def write(self, number: int | None) -> None:
        """Note that a change is on the disk (None: there was none). A failure to note it does not fail the change."""
        if self._file is not None and number is not None:
            with suppress(OSError):
                file = os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
                try:
                    os.pwrite(file, b"%*d\n" % (_WIDTH, number), 0)
                finally:
                    os.close(file)

    def _read(self) -> int:
        try:
            return int(self._file.read_bytes()) if self._file else 0
        except (OSError, ValueError):
            return 0  # there was none yet, or a kill left it half written: nothing is known to be missing


def _known(session: Session) -> int:
    row = session.get(InfoRow, _KEY)
    return int(row.value) if row else 0
