"""A connection to the ledger: sessions that read, and writes that take turns; failures come out in words.

One connection writes, and each write takes its turn before it reads (BEGIN IMMEDIATE): SQLite ignores the
waiting time of a transaction that begins to write half-way. A commit is on the disk when it returns.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from sqlalchemy import inspect, make_url
from sqlalchemy.exc import DBAPIError
from sqlmodel import Session

from evolve.clock import utc_now
from evolve.disk import in_words
from evolve.errors import StoreError
from evolve.store.engine import CANARY_KEY, bring_up_to_date, open_server, open_sqlite, sqlite_path
from evolve.store.failures import MENDING, in_plain_words
from evolve.store.mark import Mark
from evolve.store.tables import SCHEMA_VERSION, InfoRow


class Store:
    """A connection to the ledger's tables. Close it, or use it in a `with` block.

    Args:
        url: `sqlite:///path/to/ledger.db` or `postgresql://...`; a plain path means SQLite.
        is_read_only: for inspection; nothing is created or changed.
        busy_timeout_s: how long a write waits for another program.
        clock: gives the time that is written down.

    Raises:
        StoreError: the ledger cannot be opened, is damaged, or was written by a newer evolve.
        ConfigError: the address means no ledger, or its driver is not installed.
    """

    def __init__(
        self,
        url: str | Path,
        *,
        is_read_only: bool = False,
        busy_timeout_s: float = 30.0,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        self._is_read_only = is_read_only
        self._clock = clock
        self._turn = threading.RLock()
        self._shared: Session | None = None
        path = sqlite_path(url)
        self._folder = path.parent if path else None
        self._name = str(path) if path else make_url(str(url)).render_as_string(hide_password=True)
        self._mark = Mark(path)
        with self._errors():
            expected = self._mark.expected()
            self._mark.require_ledger()
            self._engine = (
                open_sqlite(path, is_read_only, busy_timeout_s)
                if path
                else open_server(str(url), is_read_only, busy_timeout_s)
            )
            try:
                self._check_schema(expected)
                if not is_read_only:
                    bring_up_to_date(self._engine)
            except BaseException:
                self.close()
                raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the database; what was recorded is on the disk already."""
        self._engine.dispose()

    @property
    def canary(self) -> str:
        """The secret text that lies in this ledger and must be seen nowhere else; empty in one of schema 1."""
        with self._reading() as session:
            row = session.get(InfoRow, CANARY_KEY)
            return row.value if row else ""

    def _now(self) -> str:
        return self._clock().isoformat()

    @contextmanager
    def _reading(self) -> Iterator[Session]:
        with self._turn, self._errors():
            if self._shared is not None:
                yield self._shared
                return
            with Session(self._engine) as session:
                yield session

    @contextmanager
    def _writing(self) -> Iterator[Session]:
        """Give a session whose changes are on the disk when the block ends, or not made at all."""
        if self._is_read_only:
            raise StoreError(f"ledger {self._name} was opened for reading only")
        engine = self._engine.execution_options(is_write=True)
        with self._turn, self._errors():
            if self._shared is not None:
                yield self._shared
                return
            with Session(engine) as session:
                with session.begin():
                    before = self._mark.rows_changed(session)
                    yield session
                    session.flush()
                    number = self._mark.count(session) if self._mark.rows_changed(session) > before else None
                self._mark.write(number)

    @contextmanager
    def together(self) -> Iterator[None]:
        """Make all writes of the block one: on the disk when it ends, or not made at all."""
        with self._writing() as session:
            is_outermost, self._shared = self._shared is None, session
            try:
                yield
            finally:
                if is_outermost:
                    self._shared = None

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except DBAPIError as error:
            raise StoreError(f"ledger {self._name}: {in_plain_words(error, self._folder)}") from error
        except OSError as error:
            raise StoreError(f"ledger {self._name}: {in_words(error)}") from error

    def _check_schema(self, expected: int) -> None:
        with Session(self._engine) as session:
            has_version = inspect(session.connection()).has_table(InfoRow.__tablename__)
            row = session.get(InfoRow, "schema_version") if has_version else None
            if row is not None:
                self._mark.require(session, expected)
        if row is None:
            raise StoreError(f"ledger {self._name}: this is a database of another program; name another file")
        if not row.value.isdecimal():
            raise StoreError(f"ledger {self._name} has schema {row.value!r}; {MENDING[sqlite3.SQLITE_CORRUPT]}")
        if int(row.value) > SCHEMA_VERSION:
            raise StoreError(f"ledger {self._name} has schema {row.value}, written by a newer evolve; upgrade evolve")
