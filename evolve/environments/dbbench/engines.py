"""What a database engine has to do for a session, and how both engines show rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from evolve.environments.dbbench.entries import Table
from evolve.records import ErrorKind

SHOWN_CHARACTERS = 800
CUT_MARK = "[TRUNCATED]"
TIMED_OUT = "Error: SQL execution timed out."


@dataclass(frozen=True, slots=True)
class Reply:
    """What a database says to one statement: rows as text, or its error in its own words."""

    text: str
    error_kind: ErrorKind | None = None


class Database(Protocol):
    """The database of one session: one table, and nobody else in it."""

    def run(self, sql: str) -> Reply:
        """Run one statement and make it last, or undo it where it fails.

        Raises:
            EnvironmentBroken: the engine is gone.
        """

    def rows_as_text(self) -> list[str] | None:
        """Return each row's values joined by commas, NULL left out; None where the table no longer has its columns."""

    def close(self) -> None:
        """Remove the database."""


class Engine(Protocol):
    """What makes databases."""

    @property
    def name(self) -> str:
        """The engine with its version, as every score names it."""

    def can_hold(self, table: Table) -> bool:
        """Say whether the engine accepts the names of a table."""

    def open(self, table: Table) -> Database:
        """Make a database that holds a table.

        Raises:
            EnvironmentBroken: the engine does not answer.
        """


def shown(rows: Iterable[tuple[object, ...]]) -> Reply:
    """Show rows as Python writes a list of tuples, cut where it gets long; all rows are read, few are kept."""
    kept: list[tuple[object, ...]] = []
    length = 0
    for row in rows:
        if length <= SHOWN_CHARACTERS:
            kept.append(row)
            length += len(str(row))
    return Reply(cut(str(kept)))


def refused(message: str) -> Reply:
    """Return the reply to a statement that the engine does not run."""
    return Reply(cut(message), ErrorKind.REJECTED)


def timed_out() -> Reply:
    """Return the reply to a statement that took too long."""
    return Reply(TIMED_OUT, ErrorKind.TIMEOUT)


def cut(text: str) -> str:
    """Cut a reply to the length that the benchmark shows."""
    return text if len(text) <= SHOWN_CHARACTERS else text[:SHOWN_CHARACTERS] + CUT_MARK


def quoted(name: str) -> str:
    """Quote a table's or column's name as both engines understand it."""
    return "`" + name.replace("`", "``") + "`"
