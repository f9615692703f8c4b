"""What the gate decides on: the scores of two arms, paired by task and trial.

Checks what it is given and never repairs it: a score outside [0, 1] is an error, a missing one is a void.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from evolve.errors import UserError

Fold = Literal["train", "guard"]
Arm = tuple[float | None, ...]
Floats = NDArray[np.float64]
GRID = 240  # paired tests read score differences in 240ths: halves to tenths, twelfths and sixteenths are exact


class ScoreError(UserError):
    """A score is not a number in [0, 1], arms have different lengths, or a task appears twice."""


@dataclass(frozen=True)
class TaskScores:
    """The scores of one task, trial by trial. None is a void: an infrastructure error, never a failure.

    A void voids its pair, so a trial counts in both arms or in neither.
    """

    task_id: str
    family: str
    fold: Fold
    incumbent: Arm
    candidate: Arm

    def __post_init__(self) -> None:
        if len(self.incumbent) != len(self.candidate):
            counts = f"{len(self.incumbent)} incumbent and {len(self.candidate)} candidate trials"
            raise ScoreError(f"task {self.task_id!r} has {counts}; an arm's missing trial is a void (None)")
        for trial, score in enumerate(self.incumbent + self.candidate):
            if score is not None and not (math.isfinite(score) and 0.0 <= score <= 1.0):
                arm = "incumbent" if trial < len(self.incumbent) else "candidate"
                where = f"task {self.task_id!r}, {arm} trial {trial % len(self.incumbent) + 1}"
                raise ScoreError(f"{where}: score {score!r} is not a number from 0 to 1; a void is None")

    @cached_property
    def pairs(self) -> tuple[tuple[float, float], ...]:
        """Valid pairs (incumbent, candidate)."""
        both = zip(self.incumbent, self.candidate, strict=True)
        return tuple((float(old), float(new)) for old, new in both if old is not None and new is not None)

    @property
    def voids(self) -> int:
        """Number of void pairs."""
        return len(self.incumbent) - len(self.pairs)

    @cached_property
    def steps(self) -> tuple[int, ...]:
        """Candidate minus incumbent of each valid pair, in 240ths."""
        return tuple(round((new - old) * GRID) for old, new in self.pairs)

    @property
    def difference(self) -> float | None:
        """Mean of candidate minus incumbent over valid pairs; None where there is no valid pair."""
        return math.fsum(new - old for old, new in self.pairs) / len(self.pairs) if self.pairs else None

    @property
    def is_informative(self) -> bool:
        """True where the scores of both arms are not all alike: another trial may tell the arms apart."""
        return len({score for pair in self.pairs for score in pair}) != 1


@dataclass(frozen=True)
class PairedScores:
    """An immutable table of tasks, kept sorted by task id so that the order of arrival never matters."""

    tasks: tuple[TaskScores, ...]

    def __post_init__(self) -> None:
        ordered = tuple(sorted(self.tasks, key=lambda task: task.task_id))
        for first, second in pairwise(ordered):
            if first.task_id == second.task_id:
                raise ScoreError(f"task {first.task_id!r} appears twice")
        object.__setattr__(self, "tasks", ordered)

    def where(self, keep: Callable[[TaskScores], bool]) -> PairedScores:
        """Return the table of the tasks that `keep` is true of."""
        return PairedScores(tuple(task for task in self.tasks if keep(task)))

    def fold(self, fold: Fold) -> PairedScores:
        """Return the table of one fold."""
        return self.where(lambda task: task.fold == fold)

    def swapped(self) -> PairedScores:
        """Return the table with the arms exchanged."""
        return PairedScores(
            tuple(replace(task, incumbent=task.candidate, candidate=task.incumbent) for task in self.tasks)
        )

    @property
    def pairs(self) -> int:
        """Number of valid pairs."""
        return sum(len(task.pairs) for task in self.tasks)

    @property
    def void_share(self) -> float:
        """Share of pairs that are void; 0 for an empty table."""
        asked = sum(len(task.incumbent) for task in self.tasks)
        return (asked - self.pairs) / asked if asked else 0.0

    @property
    def trials_per_task(self) -> float:
        """Mean number of trials per task and arm, voids included; 0 for an empty table."""
        return sum(len(task.incumbent) for task in self.tasks) / len(self.tasks) if self.tasks else 0.0

    @property
    def differences(self) -> dict[str, float]:
        """Mean difference per task id, of the tasks that have a valid pair."""
        return {task.task_id: task.difference for task in self.tasks if task.difference is not None}

    @property
    def effect(self) -> float:
        """Mean over tasks of the mean difference: each task weighs the same. 0 without a valid pair."""
        differences = self.differences
        return math.fsum(differences.values()) / len(differences) if differences else 0.0

    @property
    def families(self) -> tuple[str, ...]:
        """Names of the task families, sorted."""
        return tuple(sorted({task.family for task in self.tasks}))

    def steps(self) -> NDArray[np.int64]:
        """Return candidate minus incumbent of all valid pairs, in 240ths."""
        return np.array([step for task in self.tasks for step in task.steps], dtype=np.int64)

    def sums(self, cluster: Callable[[TaskScores], str]) -> NDArray[np.int64]:
        """Return the summed pair differences of each cluster of tasks (a task, a family), in 240ths."""
        totals: dict[str, int] = {}
        for task in self.tasks:
            totals[cluster(task)] = totals.get(cluster(task), 0) + sum(task.steps)
        return np.array([totals[name] for name in sorted(totals)], dtype=np.int64)


def table(tasks: Iterable[TaskScores]) -> PairedScores:
    """Build a table from tasks in any order."""
    return PairedScores(tuple(tasks))
