"""Reads what a proposer without a model needs of an assignment: patterns, what was tried, the harness as texts."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import orjson
from pydantic import TypeAdapter, ValidationError

from evolve.errors import ProposerError
from evolve.protocols import Assignment
from evolve.records import Pattern

PATTERNS = TypeAdapter(tuple[Pattern, ...])
UNITS_NAMED = re.compile(r"(?:\[[\w.-]+\] )+")
UNIT_DECLARED = re.compile(r"\bid\s*=\s*\"([\w.-]+)\"")

Units = frozenset[str]


def read_patterns(assignment: Assignment) -> tuple[Pattern, ...]:
    """Return the patterns of the evidence folder, most promising first.

    Raises:
        ProposerError: the file is missing or holds something else.
    """
    try:
        return PATTERNS.validate_python(_read_list(assignment.evidence / "patterns.json"))
    except ValidationError as error:
        raise ProposerError(f"patterns.json holds no list of patterns: {error.errors()[0]['msg']}") from error


def named_units(units: Units) -> str:
    """Return the units of a proposal as its hypothesis begins with them, for `tried_units` to find again."""
    return "".join(f"[{unit}] " for unit in sorted(units))


def tried_units(assignment: Assignment) -> frozenset[Units]:
    """Return the units of each past proposal that was decided, whatever the decision.

    Raises:
        ProposerError: history.json is broken.
    """
    path = assignment.evidence / "history.json"
    entries = _read_list(path) if path.exists() else []
    try:
        hypotheses = [str(entry["proposal"]["hypothesis"]) for entry in entries if entry.get("decision")]
    except (AttributeError, KeyError, TypeError) as error:
        raise ProposerError("history.json holds an entry that is no past proposal") from error
    hypotheses += [candidate.proposal.hypothesis for candidate, decision in assignment.history if decision]
    found = (UNITS_NAMED.match(hypothesis) for hypothesis in hypotheses)
    return frozenset(frozenset(re.findall(r"[\w.-]+", match.group())) for match in found if match)


def read_texts(workspace: Path) -> dict[str, str]:
    """Return the text files of the harness by their path in its folder.

    Raises:
        ProposerError: a file cannot be read.
    """
    try:
        paths = [p for p in sorted(workspace.rglob("*")) if p.suffix in (".py", ".toml", ".md") and p.is_file()]
        return {path.relative_to(workspace).as_posix(): path.read_text(encoding="utf-8") for path in paths}
    except (OSError, UnicodeDecodeError) as error:
        raise ProposerError(f"the workspace cannot be read: {error}") from error


def units_in(files: dict[str, str]) -> Units:
    """Return the ids of all units of a harness."""
    return frozenset(unit for text in files.values() for unit in UNIT_DECLARED.findall(text))


def _read_list(path: Path) -> list[Any]:
    try:
        value = orjson.loads(path.read_bytes())
    except (OSError, orjson.JSONDecodeError) as error:
        raise ProposerError(f"the evidence file {path.name} cannot be read: {error}") from error
    if not isinstance(value, list):
        raise ProposerError(f"the evidence file {path.name} holds no list")
    return value
