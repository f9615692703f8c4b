"""Scores a closed ticket: the database, the resolution and what the closing statement says. Pure.

The statement is read as whole tokens, case ignored; amounts are compared by value, so 23.5 and $23.50 are
the same. Each thing that the gold names must be there, and no reason code but the gold one may be; a
refusal needs besides a reference that the session gave with that code.
"""

from __future__ import annotations

import re
from collections.abc import Set
from dataclasses import dataclass

from evolve.environments.service_desk.cases import Gold
from evolve.environments.service_desk.policy import CODES
from evolve.records import Score

VERSION = "2"
PASS_MARK = 1.0


@dataclass(frozen=True, slots=True)
class Closing:
    """How an agent closed its ticket; `refusals` are the (code, reference) pairs it was given before."""

    resolution: str
    statement: str
    refusals: Set[tuple[str, str]] = frozenset()


def score(closing: Closing | None, is_gold_database: bool, gold: Gold) -> Score:
    """Return 1.0 where database, resolution and statement are all right, else 0.0; the parts say which."""
    parts = {
        "database": float(is_gold_database),
        "statement": float(closing is not None and says_enough(closing, gold)),
        "resolution": float(closing is not None and closing.resolution == gold.resolution),
    }
    value = min(parts.values())
    return Score(value=value, success=value >= PASS_MARK, parts=parts, version=VERSION)


def says_enough(closing: Closing, gold: Gold) -> bool:
    """True where a statement names each thing that it must and quotes no reason code that does not hold."""
    tokens = {_canonical(word) for word in re.findall(r"[\w.\-]+", closing.statement.lower())}
    required = {_canonical(word.lower()) for word in (*gold.must_name, *filter(None, [gold.code]))}
    given = {_canonical(reference.lower()) for code, reference in closing.refusals if code == gold.code}
    has_reference = not gold.code or bool(given & tokens)
    return has_reference and required <= tokens and not (CODES & tokens) - required


def _canonical(word: str) -> str:
    word = word.strip(".-")
    return f"{float(word):.2f}" if re.fullmatch(r"\d+(\.\d{1,2})?", word) else word
