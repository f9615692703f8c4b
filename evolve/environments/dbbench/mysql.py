"""The engine of reported numbers: a MariaDB or MySQL server, with a database and an account per session.

What a server says is shown as MySQL's own connector for Python writes it. The name of a session's database
is random; texts show the benchmark's name in its place, so that a session repeats.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from evolve.environments.data import need_module
from evolve.environments.dbbench.engines import Reply, quoted, refused, shown, timed_out
from evolve.environments.dbbench.entries import NAME, Table
from evolve.errors import ConfigError, EnvironmentBroken

SCHEMES = ("mysql", "mariadb")
TIMEOUT_S = 60.0  # upstream's
PATIENCE_S = 10.0  # on top of it, for a server that does not keep the time itself
LONGEST_NAME = 64
TIMEOUT_CODES = (1969, 3024)  # MariaDB's and MySQL's
SETTINGS = "SET SESSION sql_mode = '', group_concat_max_len = 1024"
COLLATION = "utf8mb4_unicode_520_ci"


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server is and who asks it."""

    user: str
    password: str = field(repr=False)
    host: str
    port: int
    socket: str | None

    @classmethod
    def of(cls, url: str) -> Address:
        """Read `mysql://user:password@host:port/?unix_socket=PATH`; without a password, MYSQL_PWD is taken.

        Raises:
            ConfigError: it is no such URL.
        """
        try:
            parts = urlsplit(url)
            port = parts.port or 3306
            settings = parse_qs(parts.query, strict_parsing=bool(parts.query))
        except ValueError as error:
            raise ConfigError(f"{NAME}: option engine is no URL: {error}") from error
        if parts.scheme not in SCHEMES or parts.path.strip("/") or set(settings) - {"unix_socket"}:
            raise ConfigError(f"{NAME}: option engine must be mysql://USER:PASSWORD@HOST:PORT/?unix_socket=PATH")
        password = unquote(parts.password or "") or os.environ.get("MYSQL_PWD", "")
        socket = settings.get("unix_socket", [None])[0]
        return cls(unquote(parts.username or "root"), password, parts.hostname or "localhost", port, socket)


class MysqlEngine:
    """Makes a database and an account per session on one server.

    Args:
        url: the server, and an account that may create databases and users.

    Raises:
        ConfigError: PyMySQL is not installed, the URL is wrong, or the server does not do what is needed.
    """

    def __init__(self, url: str, timeout_s: float = TIMEOUT_S) -> None:
        self.pymysql: Any = need_module("pymysql", extra="dbbench-mysql")
        self.address = Address.of(url)
        self.timeout_s = timeout_s
        version = self._checked_version()
        self.name = f"{'mariadb' if self.is_mariadb else 'mysql'} {version.split('-')[0]}"

    def can_hold(self, table: Table) -> bool:
        """Say whether all names have 1 to 64 characters and do not end with a space, as MySQL wants it."""
        names = (table.name, *table.columns)
        return all(0 < len(name) <= LONGEST_NAME and not name.endswith(" ") for name in names)

    def open(self, table: Table) -> MysqlDatabase:
        """Make a database that holds a table, and an account that sees this database only."""
        name, password = f"{NAME}{secrets.token_hex(6)}", secrets.token_hex(16)
        account = self._account(name)
        try:
            self.administer(
                f"CREATE DATABASE {name} CHARACTER SET utf8mb4 COLLATE {COLLATION}",
                f"CREATE USER {account} IDENTIFIED BY '{password}'",
                f"GRANT ALL PRIVILEGES ON {name}.* TO {account}",
            )
            return MysqlDatabase(self, table, name, password)
        except BaseException:
            with suppress(EnvironmentBroken):  # what went wrong first is what is told
                self.drop(name)
            raise

    def drop(self, name: str) -> None:
        """Remove a session's database and account."""
        self.administer(f"DROP DATABASE IF EXISTS {name}", f"DROP USER IF EXISTS {self._account(name)}")

    def administer(self, *statements: str) -> None:
        """Run statements under the account of the URL.

        Raises:
            EnvironmentBroken: the server does not answer, or refuses.
        """
        with self.broken_where_refused(), self.connect(self.address.user, self.address.password) as connection:
            for statement in statements:
                connection.cursor().execute(statement)

    def connect(self, user: str, password: str, database: str | None = None) -> Any:
        """Open a connection, set up as the benchmark needs it.

        Raises:
            MySQLError: the server does not answer, or refuses.
        """
        return self.pymysql.connect(
            host=self.address.host,
            port=self.address.port,
            unix_socket=self.address.socket,
            user=user,
            password=password,
            database=database,
            charset="utf8mb4",
            collation=COLLATION,
            init_command=SETTINGS,
            connect_timeout=10,
            read_timeout=self.timeout_s + PATIENCE_S,
        )

    @contextmanager
    def broken_where_refused(self) -> Iterator[None]:
        """Turn what the server refuses to us, and not to an agent, into EnvironmentBroken."""
        try:
            yield
        except self.pymysql.MySQLError as error:
            where = self.address.socket or f"{self.address.host}:{self.address.port}"
            raise EnvironmentBroken(f"{NAME}: the server at {where} does not do its part: {error}") from error

    def _account(self, name: str) -> str:
        return f"'{name}'@'{self._we}'"

    def _checked_version(self) -> str:
        """Ask for the version and go through a session's life once."""
        try:
            with (
                self.broken_where_refused(),
                self.connect(self.address.user, self.address.password) as connection,
                connection.cursor() as cursor,
            ):
                cursor.execute("SELECT VERSION(), SUBSTRING_INDEX(USER(), '@', -1)")
                version, self._we = cursor.fetchone()
            self.is_mariadb = "MariaDB" in version
            self.open(Table("checked", ("column",), (("value",),))).close()
        except EnvironmentBroken as error:
            needs = "option engine needs a running MariaDB or MySQL and an account that may create databases and users"
            raise ConfigError(f"{error}; {needs}") from error
        return str(version)


class MysqlDatabase:
    """One session's database, seen through an account of its own."""

    def __init__(self, engine: MysqlEngine, table: Table, name: str, password: str) -> None:
        self._engine = engine
        self._errors = engine.pymysql.MySQLError
        self._table = table
        self._name = name
        self._password = password
        limit = f"max_statement_time = {engine.timeout_s}"
        if not engine.is_mariadb:
            limit = f"max_execution_time = {round(engine.timeout_s * 1000)}"
        self._limit = f"SET SESSION {limit}"
        with engine.broken_where_refused():
            self._connect()
            self._fill()

    def run(self, sql: str) -> Reply:
        """Run one statement and commit, or roll back where it fails."""
        try:
            with self._connection.cursor(self._engine.pymysql.cursors.SSCursor) as cursor:
                cursor.execute(self._limit)  # again each time: a statement may have set another one
                cursor.execute(sql)
                reply = shown(map(self._masked, cursor if cursor.description else ()))
            self._connection.commit()
        except ValueError as error:  # a text that is no Unicode
            return refused(str(error))
        except self._errors as error:
            return self._failed(error)
        return reply

    def rows_as_text(self) -> list[str] | None:
        """Return each row's values joined by commas; None where the table no longer reads."""
        self._recover()
        columns = ", ".join(map(quoted, self._table.columns))
        try:
            with self._connection.cursor() as cursor:
                cursor.execute(f"SELECT CONCAT_WS(',', {columns}) FROM {quoted(self._table.name)}")  # noqa: S608
                return [_text(value) for (value,) in cursor.fetchall()]
        except self._errors as error:
            if _sqlstate(error) is None:  # the client's error: the server is gone
                raise EnvironmentBroken(f"{NAME}: the server went away while an answer was judged: {error}") from error
            return None

    def close(self) -> None:
        """Remove database and account."""
        with suppress(self._errors):
            self._connection.close()
        self._engine.drop(self._name)

    def _connect(self) -> None:
        self._connection = self._engine.connect(self._name, self._password, self._name)

    def _fill(self) -> None:
        columns = ", ".join(f"{quoted(column)} TEXT" for column in self._table.columns)
        places = ", ".join(["%s"] * len(self._table.columns))
        name = quoted(self._table.name)
        with self._connection.cursor() as cursor:
            cursor.execute(f"CREATE TABLE {name} ({columns})")
            cursor.executemany(f"INSERT INTO {_literal(name)} VALUES ({places})", self._table.rows)  # noqa: S608
        self._connection.commit()

    def _failed(self, error: Exception) -> Reply:
        """Say what failed in the connector's words."""
        code, message = error.args[0], self._shown_name(str(error.args[-1]))
        self._recover()
        if code in TIMEOUT_CODES or isinstance(error.__context__, TimeoutError):
            return timed_out()
        state = _sqlstate(error)
        return refused(f"{code} ({state}): {message}" if state else f"{code}: {message}")

    def _recover(self) -> None:
        """Undo what is not committed. A lost connection is opened again, and what it still runs is ended."""
        lost = self._connection.thread_id()
        try:
            self._connection.rollback()
        except self._errors:
            with suppress(self._errors):
                self._connection.close()
            with suppress(EnvironmentBroken):  # most often it has ended by itself
                self._engine.administer(f"KILL {lost}")
            with self._engine.broken_where_refused():
                self._connect()

    def _masked(self, row: Sequence[object]) -> tuple[object, ...]:
        return tuple(self._shown_name(value) if isinstance(value, str) else value for value in row)

    def _shown_name(self, text: str) -> str:
        return text.replace(self._name, NAME)


def _sqlstate(error: Exception) -> str | None:
    return getattr(error, "sqlstate", None)


def _text(value: object) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def _literal(name: str) -> str:
    """Double the percent signs of a name that stands beside arguments."""
    return name.replace("%", "%%")
