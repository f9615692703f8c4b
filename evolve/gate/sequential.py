"""The sequential paired test: a few trials first, more only while the question is open, and only where they inform."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from evolve.figures import percent, points
from evolve.gate.boundary import Boundary, boundary, rising
from evolve.gate.interval import gain_interval
from evolve.gate.normal import z_of
from evolve.gate.scores import PairedScores, TaskScores
from evolve.gate.signflip import family_p, pair_p, task_p
from evolve.records import Json

Outcome = Literal["continue", "accept", "reject", "cannot_tell"]
Unit = Literal["pair", "task", "family"]
P_VALUES: Mapping[Unit, Callable[[PairedScores], float]] = {"pair": pair_p, "task": task_p, "family": family_p}

FUTILE_GAP = 0.375  # z by which the last futility bound stays below that of a one-shot test at alpha
LEANING_P = 0.10  # a test that ends undecided below this p says "cannot tell", above it "reject"
FEWEST_TASKS = 20
VOID_LIMIT = 0.05


@dataclass(frozen=True, slots=True)
class Design:
    """What can be tuned about the test. The defaults are the chosen point of benchmarks/gate_frontier.py.

    `stages` are cumulative trials of a task that never rests; `shape` is that of the alpha spending; the futility
    bound rises from z = `futile_start` to `futile_end` along (trials / last) ** `futile_curve`; a task rests once
    `rest_after` valid pairs brought one and the same score, and then gets one half of the trials (0: never rests).
    """

    stages: tuple[int, ...] = (1, 2, 3, 4, 6, 8, 12, 16, 24)
    shape: float = 1.25
    futile_start: float = -0.5
    futile_end: float = 2.2
    futile_curve: float = 0.2
    rest_after: int = 3


@dataclass(frozen=True, slots=True)
class StageDecision:
    """What a stage says. `reasons` are whole sentences with their numbers; `numbers` is JSON for reports."""

    outcome: Outcome
    reasons: tuple[str, ...]
    numbers: Json


class GateRule(Protocol):
    """A test in stages. Pure: a stage is decided from the scores so far, so a resumed gate equals an unbroken one."""

    @property
    def name(self) -> str:
        """Name in reports."""

    @property
    def stages(self) -> tuple[int, ...]:
        """Cumulative trials per task and arm at each stage, for a task that never rests."""

    def decide(self, scores: PairedScores, stage: int, alpha: float) -> StageDecision:
        """Decide stage number `stage` (from 0) at the false-accept rate `alpha` of the whole test."""

    def allocate(self, scores: PairedScores, stage: int) -> Mapping[str, int]:
        """Return the trials per arm to add to each task between `stage` and the next one."""


@dataclass(frozen=True, slots=True)
class SequentialPairedTest:
    """Group-sequential sign-flip test over pairs of the training fold.

    A greedy model has one trial to give: `max_trials=1` leaves a single stage, McNemar's test. `unit` is what is
    flipped: "pair" asks whether the candidate is better on these tasks, "task" and "family" whether it would be on
    others like them (and see nothing in a patch that mends three tasks for good, which flipping pairs does).
    """

    max_trials: int | None = None
    unit: Unit = "pair"
    design: Design = Design()
    name: str = "sequential paired test"

    def __post_init__(self) -> None:
        if self.max_trials is not None and self.max_trials < 1:
            raise ValueError(f"max_trials {self.max_trials} is below 1")

    @property
    def stages(self) -> tuple[int, ...]:
        """The schedule, cut at `max_trials`."""
        planned = self.design.stages
        last = planned[-1] if self.max_trials is None else min(self.max_trials, planned[-1])
        return (*(trials for trials in planned if trials < last), last)

    def bounds(self, alpha: float) -> Boundary:
        """Return the bounds per stage for a test at `alpha`."""
        design, information = self.design, self.information
        end = min(design.futile_end, float(z_of(alpha)) - FUTILE_GAP)
        futile = rising(min(design.futile_start, end), end, information, design.futile_curve)
        return boundary(information=information, futile=futile, alpha=alpha, shape=design.shape)

    @property
    def information(self) -> tuple[float, ...]:
        """Fraction of the final trials at each stage. Resting hardly bends it: what rests had told little."""
        return tuple(trials / self.stages[-1] for trials in self.stages)

    def allocate(self, scores: PairedScores, stage: int) -> dict[str, int]:
        """Give every training task the step to the next stage, and half of it to a task that rests.

        Arms are treated alike, so the choice cannot favour one: under the null the pairs stay exchangeable and
        the sign-flip test stays exact. Guard tasks get nothing here; they are spent on after an accept.
        """
        if stage >= len(self.stages) - 1:
            return {}
        step = self.stages[stage + 1] - self.stages[stage]
        return {task.task_id: step // 2 if self.is_resting(task) else step for task in scores.fold("train").tasks}

    def is_resting(self, task: TaskScores) -> bool:
        """True where so many pairs brought one and the same score that another will hardly tell the arms apart."""
        return 0 < self.design.rest_after <= len(task.pairs) and not task.is_informative

    def decide(self, scores: PairedScores, stage: int, alpha: float) -> StageDecision:
        """Decide one stage.

        Raises:
            ValueError: there is no such stage, or alpha is not between 0 and 1.
        """
        if not 0 <= stage < len(self.stages):
            raise ValueError(f"stage {stage} is not one of {len(self.stages)}")
        train = scores.fold("train")
        numbers = self._numbers(train, stage, alpha)
        if not train.tasks:
            return StageDecision("cannot_tell", ("There is no training task to decide on.",), numbers)
        if train.void_share > VOID_LIMIT:
            reason = (
                f"{percent(train.void_share)} of the pairs are void through infrastructure errors "
                f"(limit {VOID_LIMIT:.0%}): what is left is no fair sample."
            )
            return StageDecision("cannot_tell", (reason,), numbers)
        return _decision(train, numbers, is_last=stage == len(self.stages) - 1)

    def _numbers(self, train: PairedScores, stage: int, alpha: float) -> Json:
        bounds, steps, interval = self.bounds(alpha), train.steps(), gain_interval(train)
        return {
            "stage": stage + 1,
            "stages": len(self.stages),
            "trials": self.stages[stage],
            "trials_per_task": train.trials_per_task,
            "tasks": len(train.tasks),
            "pairs": train.pairs,
            "wins": int(np.count_nonzero(steps > 0)),
            "losses": int(np.count_nonzero(steps < 0)),
            "void_share": train.void_share,
            "effect": train.effect,
            "interval": [interval.low, interval.high],
            "p": P_VALUES[self.unit](train),
            "unit": self.unit,
            "p_tasks": task_p(train),
            "p_families": family_p(train),
            "accept_p": bounds.accept_p[stage],
            "futile_p": bounds.futile_p[stage],
            "alpha": alpha,
        }


def _decision(train: PairedScores, numbers: Json, *, is_last: bool) -> StageDecision:
    p, is_better = numbers["p"], train.effect > 0.0
    if p <= numbers["accept_p"] and is_better:
        if len(train.tasks) < FEWEST_TASKS:
            reason = (
                f"{len(train.tasks)} training tasks are fewer than the {FEWEST_TASKS} that an automatic accept needs, "
                "though the test passed: look at the tasks and decide yourself."
            )
            return StageDecision("cannot_tell", (_found(numbers), reason), numbers)
        reason = f"p = {p:.2g} is at or below the {numbers['accept_p']:.2g} that this stage may spend."
        return StageDecision("accept", (_found(numbers), reason), numbers)
    if not is_last and p < numbers["futile_p"]:
        reason = f"p = {p:.2g} lies between accept ({numbers['accept_p']:.2g}) and stop ({numbers['futile_p']:.2g})."
        return StageDecision("continue", (_found(numbers), reason), numbers)
    why = (
        "these were the last trials" if is_last else f"more trials are not worth it (stop at {numbers['futile_p']:.2g})"
    )
    if p < LEANING_P and is_better:
        reason = f"p = {p:.2g} leans towards a gain, short of the {numbers['accept_p']:.2g} needed, and {why}."
        return StageDecision("cannot_tell", (_found(numbers), reason), numbers)
    return StageDecision("reject", (_found(numbers), f"p = {p:.2g} is no evidence of a gain, and {why}."), numbers)


def _found(numbers: Json) -> str:
    low, high = (100 * bound for bound in numbers["interval"])
    return (
        f"Stage {numbers['stage']} of {numbers['stages']}, {numbers['pairs']} pairs on {numbers['tasks']} tasks: "
        f"the candidate did better in {numbers['wins']} and worse in {numbers['losses']}, "
        f"{points(numbers['effect'])} points per task (95% interval {low:+.1f} to {high:+.1f})."
    )
