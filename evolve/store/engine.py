"""Makes and opens the database behind a ledger: a SQLite file, or a server.

A new file appears whole or not at all: it is made under another name and linked when its tables are on the disk.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
from pathlib import Path
from urllib.parse import quote

from sqlalchemy import Connection, Engine, create_engine, event, inspect, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError
from sqlalchemy.pool import StaticPool
from sqlmodel import Session

from evolve.errors import ConfigError, StoreError
from evolve.store.copied import copy_in_memory, needs_copy, wal_of
from evolve.store.failures import MENDING
from evolve.store.tables import SCHEMA_VERSION, BaitRow, InfoRow, Row

CANARY_KEY = "canary"
WRITERS_TURN = 0x65766F6C7665
"""The number of the lock in a server's database that whoever writes there holds."""


def sqlite_path(url: str | Path) -> Path | None:
    """Return the file that an address means, or None for a database server.

    Raises:
        ConfigError: it is no address, or one in memory.
    """
    if isinstance(url, Path) or "://" not in url:
        return Path(url)
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError) as error:  # neither is told: they may quote a password
        raise ConfigError("ledger.url is no database address; write sqlite:///FILE or postgresql://...") from error
    if parsed.get_backend_name() != "sqlite":
        return None
    if not parsed.database or parsed.database == ":memory:":
        raise ConfigError("ledger.url: a ledger in memory would forget everything; write sqlite:///FILE")
    return Path(parsed.database)


def open_sqlite(path: Path, is_read_only: bool, busy_timeout_s: float) -> Engine:
    """Open a ledger in a file, made first where there is none; one that a kill cut off is checked.

    Raises:
        StoreError: there is none to read, it is empty or damaged.
    """
    if not is_read_only:
        _remove_orphans(path)
        _create_sqlite(path)
    if not path.exists():
        raise StoreError(f"ledger {path} does not exist yet; `evolve run` makes it")
    if path.stat().st_size == 0:
        raise StoreError(
            f"ledger {path} is empty: it was truncated; restore it from a copy, or remove it to begin anew"
        )
    was_cut_off = wal_of(path).exists()

    def connect() -> sqlite3.Connection:
        return _connect_sqlite(path, is_read_only, busy_timeout_s)

    engine = create_engine("sqlite://", creator=connect, poolclass=StaticPool)
    event.listen(engine, "begin", _begin)
    if was_cut_off:
        with engine.connect() as connection:
            found = connection.exec_driver_sql("PRAGMA quick_check(1)").scalar()
        if found != "ok":
            engine.dispose()
            said = " ".join(str(found).split())
            raise StoreError(f"ledger {path}: {MENDING[sqlite3.SQLITE_CORRUPT]}: {said}")
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


def _connect_sqlite(path: Path, is_read_only: bool, busy_timeout_s: float) -> sqlite3.Connection:
    if is_read_only and needs_copy(path):
        connection = copy_in_memory(path)
    else:
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


def open_server(url: str, is_read_only: bool, busy_timeout_s: float) -> Engine:
    """Open a ledger in a database server, its tables made first where they are missing.

    Raises:
        ConfigError: the driver is not installed.
    """
    parsed = make_url(url)
    if parsed.drivername == "postgresql":
        parsed = parsed.set(drivername="postgresql+psycopg")
    try:
        engine = create_engine(parsed)
    except (ImportError, NoSuchModuleError) as error:
        hint = "pip install 'evolve-harness[postgresql]' brings the driver for postgresql://"
        raise ConfigError(f"ledger.url: no driver for {parsed.drivername}; {hint}") from error
    if parsed.get_backend_name() == "postgresql":
        event.listen(engine, "begin", lambda connection: _take_turn(connection, busy_timeout_s))
    if not is_read_only:
        _create_tables(engine.execution_options(is_write=True))
    return engine


def _take_turn(connection: Connection, busy_timeout_s: float) -> None:
    """Let one program write at a time, as in a file: what it reads first is then still so when it writes."""
    if connection.get_execution_options().get("is_write", False):
        connection.exec_driver_sql(f"SET LOCAL lock_timeout = {round(busy_timeout_s * 1000)}")
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({WRITERS_TURN})")


def bring_up_to_date(engine: Engine) -> None:
    """Make what a ledger of an older version lacks."""
    with Session(engine) as session:
        version = session.get(InfoRow, "schema_version")
        is_old = version is not None and int(version.value) < SCHEMA_VERSION
    if is_old or set(Row.metadata.tables) - set(inspect(engine).get_table_names()):
        _create_tables(engine.execution_options(is_write=True))


def _create_tables(engine: Engine) -> None:
    """Make what is missing; a ledger of version 1 lacks whole tables and the canary, and nothing in it changes."""
    Row.metadata.create_all(engine)
    with Session(engine) as session, session.begin():
        known = session.get(InfoRow, "schema_version")
        if known is None or int(known.value) < SCHEMA_VERSION:
            session.merge(InfoRow(key="schema_version", value=str(SCHEMA_VERSION)))
        if session.get(InfoRow, CANARY_KEY) is None:
            canary = f"ledger-{secrets.token_hex(16)}"
            session.add(InfoRow(key=CANARY_KEY, value=canary))
            session.merge(BaitRow(task="all", answer=canary))
