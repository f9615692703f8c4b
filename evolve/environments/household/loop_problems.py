"""The problems that the loop may see: training and guard tasks."""

from __future__ import annotations

from evolve.environments.household.problems import Problem, make_problems
from evolve.records import LoopSplit, Split

TRAIN_COUNT = 60
GUARD_COUNT = 36


def loop_problems(split: LoopSplit) -> tuple[Problem, ...]:
    """Return all training or all guard problems."""
    if split is Split.TRAIN:
        return make_problems(Split.TRAIN, folds=(0, 1), seed=20_260_117, count=TRAIN_COUNT)
    return make_problems(Split.GUARD, folds=(2,), seed=20_260_118, count=GUARD_COUNT)
