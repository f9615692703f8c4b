"""What a gate can see, and what it costs, before anything is spent; and the incumbent measured against itself."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import count

import numpy as np

from evolve.figures import percent, points
from evolve.gate.boundary import FAR, NODES, Boundary
from evolve.gate.normal import density, upper_tail
from evolve.gate.scores import GRID, PairedScores
from evolve.gate.sequential import FEWEST_TASKS, VOID_LIMIT, SequentialPairedTest
from evolve.gate.signflip import binomial_midp, pair_p

ASSUMED_VARIANCE = 0.23  # of a pair's difference where 40% of tasks pass at .95, 20% at .05, the rest from .2 to .8
TARGET_POWER = 0.80
AA_P = 0.01


@dataclass(frozen=True, slots=True)
class Operation:
    """How a sequential test behaves at one true gain: chance of an accept, chance that each stage is reached."""

    power: float
    reached: tuple[float, ...]


def operation(bounds: Boundary, information: tuple[float, ...], drift: float) -> Operation:
    """Return the power and the reach of each stage for a candidate whose final z has mean `drift`.

    The running score is B(t) ~ N(drift * t, t); the density of the paths still in the race is carried from stage
    to stage on a grid (Jennison and Turnbull 2000, chapter 19).
    """
    power, reached = 0.0, []
    nodes, mass, before = np.zeros(1), np.ones(1), 0.0
    for t, accept, futile in zip(information, bounds.accept, bounds.futile, strict=True):
        reached.append(float(mass.sum()))
        scale, moved = math.sqrt(t - before), nodes + drift * (t - before)
        power += float(np.sum(mass * upper_tail((accept * math.sqrt(t) - moved) / scale)))
        grid = np.linspace(max(futile, -FAR) * math.sqrt(t), accept * math.sqrt(t), NODES)
        weights = np.full(NODES, grid[1] - grid[0])
        weights[[0, -1]] /= 2.0
        mass = np.einsum("ij,j->i", density((grid[:, None] - moved[None, :]) / scale), mass) / scale * weights
        nodes, before = grid, t
    return Operation(power, tuple(reached))


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run can see and what one candidate costs. Gains are in score points per task (0.10 = ten points).

    Trials are per task and arm and leave out what resting tasks and reused episodes save, so they are upper bounds.
    """

    tasks: int
    max_trials: int
    alpha: float
    pair_variance: float
    smallest_gain: float
    trials_if_null: float
    trials_if_smallest_gain: float
    warnings: tuple[str, ...]
    is_greedy: bool = False
    fewest_wins: tuple[int, ...] = ()
    """Of a greedy model: the tasks that have to be won where none is lost, where one is, and so on; as room allows."""

    def __str__(self) -> str:
        if self.is_greedy:
            played = f"{self.tasks} training tasks, each played once by an arm, for a greedy model repeats itself"
            return f"{played}: {self._deciding()}."
        return (
            f"{self.tasks} training tasks, up to {_trials(self.max_trials)} per task and arm: a true gain of "
            f"{100 * self.smallest_gain:.1f} points is found with {TARGET_POWER:.0%} probability at a false-accept "
            f"rate of {percent(self.alpha, 2)}. On average a worthless candidate takes {self.trials_if_null:.1f} "
            f"trials per task and arm, one with that gain {self.trials_if_smallest_gain:.1f}."
        )

    def _deciding(self) -> str:
        """Say what is enough to pass; more lost tasks than there is room for are left out."""
        if not self.fewest_wins:
            return "too few for any candidate to pass the paired test"
        first, *more = self.fewest_wins
        told = f"newly solves {first} ({points(self.smallest_gain)} points) and breaks none"
        enough = ", ".join([told, *(f"or {wins} and breaks {losses}" for losses, wins in enumerate(more, 1))])
        rate = f"at a false-accept rate of {percent(self.alpha, 2)}"
        return f"a candidate passes the paired test, {rate}, if it {enough} (tasks being passed or failed)"


def _trials(number: int) -> str:
    return "1 trial" if number == 1 else f"{number} trials"


def plan(
    *,
    tasks: int,
    alpha: float,
    test: SequentialPairedTest | None = None,
    pair_variance: float = ASSUMED_VARIANCE,
    wished_gain: float | None = None,
) -> Plan:
    """Work out the smallest gain that is seen at 80% power, and the trials it takes.

    The standard error of the mean gain after k trials on M tasks is sqrt(variance / (M k)), with the variance of
    one pair's difference, E(d^2) of the incumbent against itself (`self_check`).

    Args:
        tasks: number of training tasks.
        alpha: false-accept rate of one candidate.
        test: the sequential test; by default that with all its stages.
        pair_variance: E(d^2) of the incumbent against itself.
        wished_gain: the gain the user hopes for; a warning says if it cannot be seen.
    """
    test = test or SequentialPairedTest()
    if tasks < 1:
        raise ValueError(f"{tasks} tasks cannot be planned for")
    bounds, last = test.bounds(alpha), test.stages[-1]
    information = test.information
    drift = _drift_for(bounds, information, TARGET_POWER)
    smallest = drift * math.sqrt(pair_variance / (tasks * last))
    return Plan(
        tasks=tasks,
        max_trials=last,
        alpha=alpha,
        pair_variance=pair_variance,
        smallest_gain=smallest,
        trials_if_null=_expected_trials(test, operation(bounds, information, 0.0)),
        trials_if_smallest_gain=_expected_trials(test, operation(bounds, information, drift)),
        warnings=_warnings(
            tasks, smallest, wished_gain, seen=f"seen with {TARGET_POWER:.0%} probability: add tasks or trials"
        ),
    )


def plan_greedy(*, tasks: int, alpha: float, wished_gain: float | None = None) -> Plan:
    """Work out which results of a candidate are accepted where both arms are greedy.

    Such an arm repeats itself, so one trial tells all, no noise hides a gain, and what is needed is exact: the
    wins and losses at which the mid-p of the sign-flip test (`binomial_midp`) is at most alpha. Tasks are taken to be
    passed or failed; graded ones can pass with less or need more. Arguments as for `plan`.
    """
    if tasks < 1:
        raise ValueError(f"{tasks} tasks cannot be planned for")
    fewest = [_fewest_wins(losses, alpha) for losses in range(3)]
    can_pass = tasks >= max(FEWEST_TASKS, fewest[0])
    smallest = fewest[0] / tasks if can_pass else 1.0
    return Plan(
        tasks=tasks,
        max_trials=1,
        alpha=alpha,
        pair_variance=0.0,
        smallest_gain=smallest,
        trials_if_null=1.0,
        trials_if_smallest_gain=1.0,
        warnings=_warnings(tasks, smallest, wished_gain if can_pass else None),
        is_greedy=True,
        fewest_wins=tuple(wins for losses, wins in enumerate(fewest) if can_pass and wins + losses <= tasks),
    )


def _fewest_wins(losses: int, alpha: float) -> int:
    return next(wins for wins in count(losses) if binomial_midp(wins, losses) <= alpha)


def _drift_for(bounds: Boundary, information: tuple[float, ...], power: float) -> float:
    low, high = 0.0, 16.0
    for _ in range(24):
        middle = (low + high) / 2.0
        if operation(bounds, information, middle).power < power:
            low = middle
        else:
            high = middle
    return high


def _expected_trials(test: SequentialPairedTest, how: Operation) -> float:
    steps = np.diff(test.stages, prepend=0)
    return float(np.dot(how.reached, steps))


def _warnings(
    tasks: int, smallest: float, wished: float | None, *, seen: str = "enough to pass: add tasks"
) -> tuple[str, ...]:
    warnings = []
    if tasks < FEWEST_TASKS:
        warnings.append(f"With {tasks} training tasks (fewer than {FEWEST_TASKS}) nothing is accepted automatically.")
    if smallest > 1.0:
        warnings.append("Not even a gain from none to all solved would be seen reliably.")
    if wished is not None and wished < smallest:
        warnings.append(
            f"A gain of {100 * wished:.1f} points is wished for, but only {100 * smallest:.1f} points and more are "
            f"{seen}."
        )
    return tuple(warnings)


@dataclass(frozen=True, slots=True)
class SelfCheck:
    """The incumbent against itself: whether it passed, the noise it showed, and why in whole sentences."""

    is_passed: bool
    p: float
    pair_variance: float
    effect: float
    reasons: tuple[str, ...]


def self_check(scores: PairedScores) -> SelfCheck:
    """Judge an A/A control: the incumbent in both arms, at the concurrency that the run will use.

    Fails where the two-sided sign-flip mid-p is below .01 (the arms differ although nothing does: drift, load, order)
    or over 5% of the pairs are void. The noise is E(d^2) over pairs.
    """
    steps = scores.steps() / GRID
    one_sided = pair_p(scores)
    p = min(1.0, 2.0 * min(one_sided, 1.0 - one_sided))
    variance = float(np.mean(steps**2)) if steps.size else 0.0
    reasons = []
    if not steps.size:
        reasons.append("No valid pair was measured.")
    if scores.void_share > VOID_LIMIT:
        share = f"{percent(scores.void_share)} of the pairs are void (limit {VOID_LIMIT:.0%})"
        reasons.append(f"{share}: mend the infrastructure first.")
    if p < AA_P:
        reasons.append(
            f"The incumbent differs from itself by {points(scores.effect)} points per task (p = {p:.2g}): "
            "something besides the harness moves the scores, and no verdict could be believed."
        )
    if not reasons:
        found = f"The incumbent differs from itself by {points(scores.effect)} points per task (p = {p:.2g})"
        return SelfCheck(True, p, variance, scores.effect, (f"{found}, which is chance.",))
    return SelfCheck(False, p, variance, scores.effect, tuple(reasons))
