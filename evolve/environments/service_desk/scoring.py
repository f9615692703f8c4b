"""Scores a closed ticket: the database, the resolution and what the closing statement says. Pure.

The statement is read as whole tokens, case ignored; amounts are compared by value, so 23.5 and $23.50 are
the same. Each thing that the gold names must be there, and no reason code but the gold one may be.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from evolve.environments.service_desk.cases import Gold
from evolve.environments.service_desk.policy import CODES
from evolve.records import Score

VERSION = "1"
PASS_MARK = 1.0


@dataclass(frozen=True, slots=True)
class Closing:
    """How an agent closed its ticket."""

    resolution: str
    statement: str


def score(closing: Closing | None, is_gold_database: bool, gold: Gold) -> Score:
    """Return 1.0 where database, resolution and statement are all right, else 0.0; the parts say which."""
    parts = {
        "database": float(is_gold_database),
        "statement": float(closing is not None and says_enough(closing.statement, gold)),
        "resolution": float(closing is not None and closing.resolution == gold.resolution),
    }
    value = min(parts.values())
    return Score(value=value, success=value >= PASS_MARK, parts=parts, version=VERSION)


def says_enough(statement: str, gold: Gold) -> bool:
    """True where a statement names each thing that it must and quotes no reason code that does not hold."""
    tokens = {_canonical(word) for word in re.findall(r"[\w.\-]+", statement.lower())}
    required = {_canonical(word.lower()) for word in gold.must_name}
    return required <= tokens and not (CODES & tokens) - required


def _canonical(word: str) -> str:
    word = word.strip(".-")
    return f"{float(word):.2f}" if re.fullmatch(r"\d+(\.\d{1,2})?", word) else word
