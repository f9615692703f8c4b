"""The mechanic: picks the most promising pattern that it has an untried recipe for, and applies that recipe."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson
from pydantic import TypeAdapter, ValidationError

from evolve.errors import ProposerError
from evolve.proposers.mechanic.recipes import Recipe, recipes_for
from evolve.proposers.mechanic.units import write_unit
from evolve.protocols import Assignment, Proposed
from evolve.records import Pattern, Proposal

PATTERNS = TypeAdapter(tuple[Pattern, ...])
MOST_TASKS_AT_RISK = 20


class Mechanic:
    """A proposer without a model: deterministic given patterns, history and harness."""

    kind = "mechanic"

    async def propose(self, assignment: Assignment) -> Proposed:
        """Apply one recipe to the harness in the workspace.

        Returns:
            A proposal whose hypothesis begins with the unit id in brackets; none where no recipe is left to try.

        Raises:
            ProposerError: the evidence folder or the workspace cannot be read.
        """
        return await asyncio.to_thread(_propose, assignment)


def _propose(assignment: Assignment) -> Proposed:
    patterns = _read_patterns(assignment.evidence / "patterns.json")
    decided = _decided_units(assignment)
    files = _read_texts(assignment.workspace)
    for pattern, recipe in _choices(patterns):
        unit = recipe.unit_id(pattern)
        if unit in decided or any(unit in _unit_ids(text) for text in files.values()):
            continue
        changed = write_unit(recipe, pattern, files)
        if changed is not None:
            _write(assignment.workspace, changed)
            return Proposed(_proposal(recipe, pattern))
    return Proposed(None)


def _choices(patterns: tuple[Pattern, ...]) -> Iterator[tuple[Pattern, Recipe]]:
    """Yield every pattern's first recipe, then every pattern's second, and so on: new patterns before new tries."""
    ranked = [(turn, pattern, recipe) for pattern in patterns for turn, recipe in enumerate(recipes_for(pattern))]
    return ((pattern, recipe) for _, pattern, recipe in sorted(ranked, key=lambda choice: choice[0]))


def _proposal(recipe: Recipe, pattern: Pattern) -> Proposal:
    counter_tasks = [task for task in pattern.detail.get("counter_tasks", ()) if task not in pattern.tasks]
    return Proposal(
        hypothesis=f"[{recipe.unit_id(pattern)}] {recipe.hypothesis}",
        layer=recipe.layer,
        pattern_id=pattern.pattern_id,
        predicts_fixed=pattern.tasks,
        at_risk=tuple(counter_tasks[:MOST_TASKS_AT_RISK]),
    )


def _decided_units(assignment: Assignment) -> frozenset[str]:
    """Return the units of past proposals, whatever was decided: none of them is proposed again."""
    path = assignment.evidence / "history.json"
    entries = _read_json(path) if path.exists() else []
    hypotheses = [str(entry["proposal"]["hypothesis"]) for entry in entries if entry.get("decision")]
    hypotheses += [candidate.proposal.hypothesis for candidate, decision in assignment.history if decision]
    return frozenset(match.group(1) for text in hypotheses if (match := re.match(r"\[([\w.-]+)\]", text)))


def _unit_ids(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\bid\s*=\s*\"([\w.-]+)\"", text))


def _read_patterns(path: Path) -> tuple[Pattern, ...]:
    try:
        return PATTERNS.validate_python(_read_json(path))
    except ValidationError as error:
        raise ProposerError(f"{path.name} holds no list of patterns: {error.errors()[0]['msg']}") from error


def _read_json(path: Path) -> list[Any]:
    try:
        value = orjson.loads(path.read_bytes())
    except (OSError, orjson.JSONDecodeError) as error:
        raise ProposerError(f"the evidence file {path.name} cannot be read: {error}") from error
    if not isinstance(value, list):
        raise ProposerError(f"the evidence file {path.name} holds no list")
    return value


def _read_texts(workspace: Path) -> dict[str, str]:
    """Return the text files of the harness by their path in its folder."""
    try:
        paths = [p for p in sorted(workspace.rglob("*")) if p.suffix in (".py", ".toml", ".md") and p.is_file()]
        return {path.relative_to(workspace).as_posix(): path.read_text(encoding="utf-8") for path in paths}
    except (OSError, UnicodeDecodeError) as error:
        raise ProposerError(f"the workspace cannot be read: {error}") from error


def _write(workspace: Path, changed: Mapping[str, str]) -> None:
    for name, text in changed.items():
        path = workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
