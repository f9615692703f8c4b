"""The sealed problems: listed against a recorded look only. Nothing but the environment may import this."""

from __future__ import annotations

from evolve.environments.household.problems import Problem, make_problems
from evolve.records import Split

HELDOUT_COUNT = 60
CANARY = "household-canary-90b144250adb871477b016e02c2a04fc"
"""Stands in the hidden half of each held-out problem; wherever else it turns up, the seal is broken."""


def heldout_problems() -> tuple[Problem, ...]:
    """Return all held-out problems."""
    return make_problems(Split.HELDOUT, folds=(3, 4), seed=20_260_119, count=HELDOUT_COUNT, canary=CANARY)
