"""The two refusals that keep held-out tasks from the loop, in the same words for every environment."""

from __future__ import annotations

from evolve.errors import SealError
from evolve.records import Look, Split


def require_loop_split(name: str, split: Split) -> None:
    """Let training and guard tasks be listed, and nothing else.

    Raises:
        SealError: anything else was asked for.
    """
    if split not in (Split.TRAIN, Split.GUARD):
        raise SealError(f"{name}: the {split} tasks are listed against a recorded look only")


def require_look(name: str, look: Look) -> None:
    """Let held-out tasks be listed against a look for this environment only.

    Raises:
        SealError: the look is for another one.
    """
    if look.environment != name:
        raise SealError(f"look {look.look_id} is for {look.environment}, not for {name}")
