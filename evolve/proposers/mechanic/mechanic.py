"""The mechanic: picks the most promising pattern that it has an untried recipe for, and applies that recipe."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from evolve.proposers.mechanic.evidence import Units, named_units, read_patterns, read_texts, tried_units, units_in
from evolve.proposers.mechanic.recipes import Recipe, recipes_for
from evolve.proposers.mechanic.units import write_unit
from evolve.protocols import Assignment, Proposed
from evolve.records import Pattern, Proposal

MOST_TASKS_AT_RISK = 20
LARGEST_BUNDLE = 5


class Mechanic:
    """A proposer without a model: deterministic given patterns, history and harness."""

    kind = "mechanic"

    async def propose(self, assignment: Assignment) -> Proposed:
        """Apply one recipe to the harness in the workspace.

        Returns:
            A proposal whose hypothesis begins with its unit ids in brackets; none where no recipe is left to try.

        Raises:
            ProposerError: the evidence folder or the workspace cannot be read.
        """
        return await asyncio.to_thread(_propose, assignment)


def _propose(assignment: Assignment) -> Proposed:
    tried, files = tried_units(assignment), read_texts(assignment.workspace)
    taken = units_in(files)
    for recipe, patterns in _choices(read_patterns(assignment), frozenset().union(taken, *tried)):
        units = frozenset(recipe.unit_id(pattern) for pattern in patterns)
        changed = {} if units in tried or units & taken else _write_units(recipe, patterns, files)
        if changed:
            _save(assignment.workspace, changed)
            return Proposed(_proposal(recipe, patterns, units))
    return Proposed(None)


def _choices(patterns: Sequence[Pattern], known: Units) -> Iterator[tuple[Recipe, tuple[Pattern, ...]]]:
    """Yield every pattern's first recipe, then every pattern's second, and so on: new patterns before new tries.

    A pattern whose unit is new takes other new patterns of a bundled recipe along; one that was part of a
    bundle comes alone.
    """
    ranked = [(turn, pattern, recipe) for pattern in patterns for turn, recipe in enumerate(recipes_for(pattern))]
    for _, pattern, recipe in sorted(ranked, key=lambda choice: choice[0]):
        others = [p for p in patterns if p is not pattern and recipe.applies(p) and recipe.unit_id(p) not in known]
        is_bundle = recipe.is_bundled and recipe.unit_id(pattern) not in known
        yield recipe, (pattern, *(others[: LARGEST_BUNDLE - 1] if is_bundle else ()))


def _write_units(recipe: Recipe, patterns: Sequence[Pattern], files: Mapping[str, str]) -> dict[str, str]:
    """Return the files that change; empty where one of the units has no room."""
    changed: dict[str, str] = {}
    for pattern in patterns:
        written = write_unit(recipe, pattern, {**files, **changed})
        if written is None:
            return {}
        changed |= written
    return changed


def _proposal(recipe: Recipe, patterns: Sequence[Pattern], units: Units) -> Proposal:
    fixed = sorted({task for pattern in patterns for task in pattern.tasks})
    matching = {str(task) for pattern in patterns for task in pattern.detail.get("counter_tasks", ())}
    return Proposal(
        hypothesis=named_units(units) + recipe.hypothesis,
        layer=recipe.layer,
        pattern_id=patterns[0].pattern_id,
        predicts_fixed=tuple(fixed),
        at_risk=tuple(sorted(matching - set(fixed))[:MOST_TASKS_AT_RISK]),
    )


def _save(workspace: Path, changed: Mapping[str, str]) -> None:
    for name, text in changed.items():
        path = workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
