"""The embedded engine: a database in memory that understands MySQL's SQL and compares texts as MySQL does.

It reaches no file. How long a statement may take is counted in steps of SQLite's machine and not by the
clock, so that a session repeats exactly.
"""

from __future__ import annotations

import hashlib
import sqlite3
from functools import lru_cache
from random import Random

from evolve.environments.data import need_module
from evolve.environments.dbbench.engines import Reply, quoted, refused, shown, timed_out
from evolve.environments.dbbench.entries import Table
from evolve.environments.dbbench.texts import folded, is_like
from evolve.environments.dbbench.translation import Translator

STEP_LIMIT = 20_000_000
STEPS_A_LOOK = 10_000
LONGEST_VALUE = 1_000_000
COLLATION = "mysql_text"
READABLE_PRAGMAS = ("table_info", "table_list", "table_xinfo")


class SqliteEngine:
    """Makes a database in memory per session.

    Raises:
        ConfigError: sqlglot is not installed.
    """

    def __init__(self, step_limit: int = STEP_LIMIT) -> None:
        version = need_module("sqlglot", extra="dbbench").__version__
        self.name = f"sqlite {sqlite3.sqlite_version}, sqlglot {version}"
        self._step_limit = step_limit
        self._translator = Translator(COLLATION)

    def can_hold(self, table: Table) -> bool:
        """Say yes: any name will do."""
        return True

    def open(self, table: Table) -> SqliteDatabase:
        """Make a database that holds a table."""
        return SqliteDatabase(table, self._translator, self._step_limit)


class SqliteDatabase:
    """One table in memory."""

    def __init__(self, table: Table, translator: Translator, step_limit: int) -> None:
        self._table = table
        self._translator = translator
        self._looks_left = 0
        self._looks = step_limit // STEPS_A_LOOK
        self._connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        _equip(self._connection)
        self._fill()
        self._connection.set_progress_handler(self._is_too_long, STEPS_A_LOOK)
        self._connection.set_authorizer(_authorize)

    def run(self, sql: str) -> Reply:
        """Run one statement, given in MySQL's SQL."""
        self._looks_left = self._looks
        try:
            reply = shown(self._connection.execute(self._translator.translate(sql)))
        except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
            reply = timed_out() if self._looks_left < 0 else refused(str(error))
        if self._connection.in_transaction:
            self._connection.commit()  # as upstream does after each statement
        return reply

    def rows_as_text(self) -> list[str] | None:
        """Return each row's values joined by commas; None where the table no longer reads."""
        self._looks_left = self._looks
        columns = ", ".join(map(quoted, self._table.columns))
        try:
            rows = self._connection.execute(f"SELECT {columns} FROM {quoted(self._table.name)}").fetchall()  # noqa: S608
        except sqlite3.Error:
            return None
        return [",".join(str(value) for value in row if value is not None) for row in rows]

    def close(self) -> None:
        """Forget the database."""
        self._connection.close()

    def _fill(self) -> None:
        name = quoted(self._table.name)
        columns = ", ".join(f"{quoted(column)} TEXT COLLATE {COLLATION}" for column in self._table.columns)
        self._connection.execute(f"CREATE TABLE {name} ({columns})")
        places = ", ".join("?" * len(self._table.columns))
        self._connection.executemany(f"INSERT INTO {name} VALUES ({places})", self._table.rows)  # noqa: S608

    def _is_too_long(self) -> bool:
        self._looks_left -= 1
        return self._looks_left < 0


def _equip(connection: sqlite3.Connection) -> None:
    """Give a connection MySQL's comparisons and the functions that SQLite lacks."""
    fold = lru_cache(maxsize=4096)(folded)

    def collate(left: str, right: str) -> int:
        one, other = fold(left), fold(right)
        return (one > other) - (one < other)

    def like(pattern: object, text: object) -> bool | None:
        return None if pattern is None or text is None else is_like(fold(str(text)), fold(str(pattern)))

    drawn = Random(0)  # noqa: S311  # not for secrets: RAND() in a query repeats from session to session
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_VALUE)
    connection.create_collation(COLLATION, collate)
    connection.create_function("like", 2, like, deterministic=True)
    connection.create_function("md5", 1, _md5, deterministic=True)
    connection.create_function("concat_ws", -1, _concat_ws, deterministic=True)
    connection.create_function("substring_index", 3, _substring_index, deterministic=True)
    connection.create_function("random", 0, lambda: drawn.getrandbits(63))


def _authorize(action: int, first: str | None, *_: object) -> int:
    """Keep a session inside its memory: no other database file, no setting of the connection."""
    if action in (sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH):
        return sqlite3.SQLITE_DENY
    if action == sqlite3.SQLITE_PRAGMA and (first or "").lower() not in READABLE_PRAGMAS:
        return sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK


def _md5(value: object) -> str | None:
    return None if value is None else hashlib.md5(str(value).encode(), usedforsecurity=False).hexdigest()


def _concat_ws(*values: object) -> str | None:
    separator, *rest = values or (None,)
    return None if separator is None else str(separator).join(str(value) for value in rest if value is not None)


def _substring_index(text: object, mark: object, count: object) -> str | None:
    if text is None or mark is None or not isinstance(count, int):
        return None
    pieces = str(text).split(str(mark)) if mark != "" else []
    return str(mark).join(pieces[:count] if count >= 0 else pieces[count:])
