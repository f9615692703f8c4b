"""Scores a committed answer: a question by its values, a change by what the table holds then. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from evolve.environments.dbbench.answers import is_equal
from evolve.environments.dbbench.engines import Database
from evolve.environments.dbbench.entries import Entry
from evolve.records import Score

VERSION = "1"
PASS_MARK = 1.0
ROW_HASH_LENGTH = 5
HASHED_CHARACTERS = 1024  # MySQL's default of group_concat_max_len


def table_hash(rows: Iterable[str]) -> str:
    """Return the benchmark's hash of a table: MD5 over the sorted beginnings of each row's MD5."""
    joined = ",".join(sorted(_md5(row)[:ROW_HASH_LENGTH] for row in rows))
    return _md5(joined[:HASHED_CHARACTERS])


def is_right(entry: Entry, answer: object, database: Database) -> bool:
    """Say whether an answer, or for a change the table, is what the entry expects."""
    if entry.table_hash is None:
        return is_equal(answer, entry.labels)
    rows = database.rows_as_text()
    return rows is not None and table_hash(rows) == entry.table_hash


def score(verdict: bool | None, engine: str) -> Score:
    """Return 1.0 for a right answer, 0.0 for a wrong one or none (None); the version names the engine."""
    value = float(verdict is True)
    parts = {"committed": float(verdict is not None), "correct": value}
    return Score(value=value, success=value >= PASS_MARK, parts=parts, version=f"{VERSION} on {engine}")


def _md5(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
