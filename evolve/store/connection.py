"""Opens the ledger's database and turns its failures into words.

One connection writes, and each write takes its turn before it reads (BEGIN IMMEDIATE): SQLite ignores the
waiting time of a transaction that begins to write half-way. A commit is on the disk when it returns.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

from sqlalchemy import Connection, Engine, create_engine, event, inspect, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError
from sqlalchemy.pool import StaticPool
from sqlmodel import Session

from evolve.disk import FULL, in_words, why_unwritable
from evolve.errors import StoreError
from evolve.store.mark import Mark
from evolve.store.tables import SCHEMA_VERSION, BaitRow, InfoRow, Row

_MENDING = {
    sqlite3.SQLITE_BUSY: "another program holds it; close that program or wait, then run again",
    sqlite3.SQLITE_LOCKED: "another program holds it; close that program or wait, then run again",
    sqlite3.SQLITE_FULL: FULL,
    sqlite3.SQLITE_IOERR: "the disk does not read or write; check it, then run again",
    sqlite3.SQLITE_CORRUPT: "the file is damaged; restore it from a copy (traces and git are not affected)",
    sqlite3.SQLITE_NOTADB: "the file is no SQLite database; restore it from a copy or name another file",
    sqlite3.SQLITE_READONLY: "the file or its folder cannot be written; change the permissions",
    sqlite3.SQLITE_CANTOPEN: "the file cannot be opened; check that it exists and may be read and written",
}
_DISK_IN_THE_WAY = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY)
"""Errors behind which a disk may stand that is full or read-only; SQLite does not tell, so the disk is asked."""

_CANARY_KEY = "canary"


def utc_now() -> datetime:
    """Return the present time."""
    return datetime.now(UTC)


class Store:
    """A connection to the ledger's tables. Close it, or use it in a `with` block.

    Args:
        url: `sqlite:///path/to/ledger.db` or `postgresql://...`; a plain path means SQLite.
        is_read_only: for inspection; nothing is created or changed.
        busy_timeout_s: how long a write waits for another program.
        clock: gives the time that is written down.

    Raises:
        StoreError: the ledger cannot be opened, is damaged, or was written by a newer evolve.
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
        path = _sqlite_path(url)
        self._folder = path.parent if path else None
        self._name = str(path) if path else make_url(str(url)).render_as_string(hide_password=True)
        self._mark = Mark(path)
        with self._errors():
            expected = self._mark.expected()
            if not is_read_only:
                self._mark.require_ledger()
            self._engine = (
                _open_sqlite(path, is_read_only, busy_timeout_s) if path else _open_server(str(url), is_read_only)
            )
            try:
                self._check_schema(expected)
                if not is_read_only:
                    _bring_up_to_date(self._engine)
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
            row = session.get(InfoRow, _CANARY_KEY)
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
            raise StoreError(f"ledger {self._name}: {_explain(error, self._folder)}") from error
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
        if int(row.value) > SCHEMA_VERSION:
            raise StoreError(f"ledger {self._name} has schema {row.value}, written by a newer evolve; upgrade evolve")


def _sqlite_path(url: str | Path) -> Path | None:
    """Return the file that an address means, or None for a database server."""
    if isinstance(url, Path) or "://" not in url:
        return Path(url)
    try:
        parsed = make_url(url)
    except ArgumentError as error:
        raise StoreError(f"{url!r} is no database address; write sqlite:///file or postgresql://...") from error
    if parsed.get_backend_name() != "sqlite":
        return None
    if not parsed.database or parsed.database == ":memory:":
        raise StoreError("a ledger in memory would forget everything; write sqlite:///file")
    return Path(parsed.database)


def _open_sqlite(path: Path, is_read_only: bool, busy_timeout_s: float) -> Engine:
    if not is_read_only:
        _remove_orphans(path)
        _create_sqlite(path)
    if not path.exists():
        raise StoreError(f"ledger {path} does not exist yet; `evolve run` makes it")
    if path.stat().st_size == 0:
        raise StoreError(
            f"ledger {path} is empty: it was truncated; restore it from a copy, or remove it to begin anew"
        )
    was_cut_off = _wal_of(path).exists()

    def connect() -> sqlite3.Connection:
        return _connect_sqlite(path, is_read_only, busy_timeout_s)

    engine = create_engine("sqlite://", creator=connect, poolclass=StaticPool)
    event.listen(engine, "begin", _begin)
    if was_cut_off:
        with engine.connect() as connection:
            found = connection.exec_driver_sql("PRAGMA quick_check(1)").scalar()
        if found != "ok":
            engine.dispose()
            raise StoreError(f"ledger {path}: {_MENDING[sqlite3.SQLITE_CORRUPT]}: {found}")
    return engine


def _create_sqlite(path: Path) -> None:
    """Make the file with its tables under another name first, so that an empty ledger always means damage.

    It is in WAL mode from the start: a journal that a kill left could not be rolled back by those who only read.
    """
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}.new")
    draft.unlink(missing_ok=True)
    engine = create_engine("sqlite://", creator=lambda: sqlite3.connect(draft))
    for setting in ("journal_mode=WAL", "synchronous=OFF"):
        event.listen(engine, "connect", lambda connection, _, setting=setting: connection.execute(f"PRAGMA {setting}"))
    try:
        _create_tables(engine)
        engine.dispose()
        with draft.open("rb") as stream:
            os.fsync(stream)  # once, in place of after each table
        os.link(draft, path)
    except FileExistsError:
        pass  # another process was faster; its ledger is as good
    finally:
        engine.dispose()
        draft.unlink(missing_ok=True)


def _remove_orphans(path: Path) -> None:
    """Remove what processes left that were killed while they made a ledger."""
    for draft in path.parent.glob(f".{path.name}.*.new*"):
        maker = draft.name.removeprefix(f".{path.name}.").split(".")[0]
        if maker.isdigit() and not _is_alive(int(maker)):
            draft.unlink(missing_ok=True)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True  # of another user
    return True


def _create_tables(engine: Engine) -> None:
    """Make what is missing; a ledger of version 1 lacks whole tables and the canary, and nothing in it changes."""
    Row.metadata.create_all(engine)
    with Session(engine) as session, session.begin():
        known = session.get(InfoRow, "schema_version")
        if known is None or int(known.value) < SCHEMA_VERSION:
            session.merge(InfoRow(key="schema_version", value=str(SCHEMA_VERSION)))
        if session.get(InfoRow, _CANARY_KEY) is None:
            canary = f"ledger-{secrets.token_hex(16)}"
            session.add(InfoRow(key=_CANARY_KEY, value=canary))
            session.merge(BaitRow(task="all", answer=canary))


def _bring_up_to_date(engine: Engine) -> None:
    with Session(engine) as session:
        version = session.get(InfoRow, "schema_version")
        is_old = version is not None and int(version.value) < SCHEMA_VERSION
    if is_old or set(Row.metadata.tables) - set(inspect(engine).get_table_names()):
        _create_tables(engine.execution_options(is_write=True))


def _connect_sqlite(path: Path, is_read_only: bool, busy_timeout_s: float) -> sqlite3.Connection:
    address = f"file:{quote(str(path.resolve()))}?mode={'ro' if is_read_only else 'rw'}"
    connection = sqlite3.connect(
        address, uri=True, timeout=busy_timeout_s, isolation_level=None, check_same_thread=False
    )
    settings = ["query_only=ON"] if is_read_only else ["journal_mode=WAL", "synchronous=FULL"]
    try:
        for setting in [*settings, "foreign_keys=ON"]:
            connection.execute(f"PRAGMA {setting}")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _begin(connection: Connection) -> None:
    is_write = connection.get_execution_options().get("is_write", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if is_write else "BEGIN")


def _open_server(url: str, is_read_only: bool) -> Engine:
    parsed = make_url(url)
    if parsed.drivername == "postgresql":
        parsed = parsed.set(drivername="postgresql+psycopg")
    try:
        engine = create_engine(parsed)
    except (ImportError, NoSuchModuleError) as error:
        hint = "`pip install evolve-harness[postgresql]` brings the driver for PostgreSQL"
        raise StoreError(f"no driver for {parsed.drivername}; {hint}") from error
    if not is_read_only:
        _create_tables(engine)
    return engine


def _wal_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


def _explain(error: DBAPIError, folder: Path | None) -> str:
    cause: Any = error.orig
    code = getattr(cause, "sqlite_errorcode", None)
    kind = code & 0xFF if code is not None else -1
    refusal = why_unwritable(folder) if folder and kind in _DISK_IN_THE_WAY else None
    return in_words(refusal) if refusal else _MENDING.get(kind, str(cause))
