"""Writes the unit that a recipe makes of a pattern into harness files: one file changed, the rest untouched."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping

from evolve.prompts import render
from evolve.proposers.mechanic.edits import DOCSTRINGS, with_note, with_rule
from evolve.proposers.mechanic.recipes import Recipe
from evolve.records import Json, Layer, Pattern

LONGEST_NOTE = 400
MOST_SKILL_WORDS = 110
FEWEST_WORDS = 2


def write_unit(recipe: Recipe, pattern: Pattern, files: Mapping[str, str]) -> dict[str, str] | None:
    """Return the one file that changes, as path and new text; None where the text layers have no room for it.

    Args:
        recipe: what to make.
        pattern: what to make it of.
        files: the harness as it is, path to text.
    """
    text = render(f"mechanic/{recipe.template}", **_values(recipe, pattern))
    if recipe.template.endswith(".py.j2"):
        path = "action.py" if recipe.layer is Layer.ACTION else "trajectory.py"
        addition = "\n\n".join([*map(inspect.getsource, recipe.carries), text])
        return {path: with_rule(files.get(path) or DOCSTRINGS[path], addition)}
    if recipe.template.endswith(".md.j2"):
        body = text.split("+++")[-1]
        name = recipe.unit_id(pattern).partition(".")[2]
        return {f"skills/{name}.md": text} if len(body.split()) <= MOST_SKILL_WORDS else None
    return _note(recipe, pattern, " ".join(text.split()), files.get("contract.toml", ""))


def evidence_of(pattern: Pattern) -> str:
    """Say how many tasks a pattern rests on and how many successes speak against it."""
    return f"{len(pattern.tasks)} failed training tasks; {pattern.counter_support} successful episodes match too"


def _note(recipe: Recipe, pattern: Pattern, text: str, contract: str) -> dict[str, str] | None:
    if len(text) > LONGEST_NOTE:
        return None
    tools = pattern.detail.get("tools", [])
    is_on_tool = recipe.on_tool and len(tools) == 1
    place = {"tool": str(tools[0])} if is_on_tool else {}
    fields = {"id": recipe.unit_id(pattern), **place, "text": text, "evidence": evidence_of(pattern)}
    return {"contract.toml": with_note(contract, "tool" if is_on_tool else "system", fields)}


def _values(recipe: Recipe, pattern: Pattern) -> Json:
    """Return what the templates may name; a template names only what its kinds of pattern have."""
    unit = recipe.unit_id(pattern)
    values: Json = {
        "closing_tool": None,
        "tools": [],
        **pattern.detail,
        "unit": unit,
        "function": re.sub(r"\W", "_", unit.partition(".")[2]),
        "evidence": evidence_of(pattern),
    }
    if recipe.layer is Layer.SKILL:
        family = re.findall(r"[a-z]+", str(pattern.detail["family"]).lower())
        words = list(pattern.detail["words"])
        when = words if len(words) >= FEWEST_WORDS else list(dict.fromkeys([*family, *words]))
        values |= {"title": " ".join(family).capitalize(), "when": " ".join(when)}
    return values
