"""What `evolve init` says: what was made or added, and the commands that come next, ready to be pasted."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from evolve.extend import Extended


def started_text(given: Path, environments: Sequence[str], *, is_recorded: bool) -> str:
    """Return what people read of a new workspace.

    Args:
        given: its folder as it was typed.
    """
    root, place = given.resolve(), shlex.quote(str(given))
    first = "" if is_recorded else f"name your model in {root / 'evolve.toml'}, then "
    text = (
        f"Made a workspace in {root} for {', '.join(environments)}.\n"
        f"Next: {first}`evolve doctor -C {place}` and `evolve run -C {place}`."
    )
    if is_recorded:
        text += "\nCompletions are RECORDED, of a real local model: a request that is not among them ends a command."
    return text


def extended_text(given: Path, extended: Extended) -> str:
    """Return what people read of a workspace that has more environments now."""
    kept = f"There already: {', '.join(extended.kept)}.\n" if extended.kept else ""
    return (
        f"Added {', '.join(extended.added)} to the workspace in {given.resolve()}.\n{kept}"
        f"Next: `evolve run -C {shlex.quote(str(given))} --env {extended.added[0]}`."
    )
