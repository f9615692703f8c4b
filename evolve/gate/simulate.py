"""A world with known answers to prove a gate on: tasks with pass rates, patches with true effects, thousands of runs.

Arrays are runs x tasks, and a tape is runs x tasks x trials of passes. The sequential test is played here on whole
tapes at once; a test holds this against `SequentialPairedTest` deciding the same tapes one by one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from evolve.gate.scores import Fold, PairedScores, TaskScores
from evolve.gate.sequential import GateRule, SequentialPairedTest, StageDecision

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Counts = NDArray[np.int16]
Effect = Callable[[Floats, float, np.random.Generator], Floats]

EASY_SHARE, EASY_RATE = 0.4, 0.95
HARD_SHARE, HARD_RATE = 0.2, 0.05
MIDDLE_RATES = (0.2, 0.8)


def pass_rates(rng: np.random.Generator, runs: int, tasks: int) -> Floats:
    """Return true pass rates of an incumbent: 40% of tasks easy (.95), 20% hard (.05), the rest from .2 to .8."""
    easy, hard = round(EASY_SHARE * tasks), round(HARD_SHARE * tasks)
    rates = rng.uniform(*MIDDLE_RATES, size=(runs, tasks))
    rates[:, :easy] = EASY_RATE
    rates[:, easy : easy + hard] = HARD_RATE
    return rates


def shifted(rates: Floats, gain: float, rng: np.random.Generator) -> Floats:
    """Return the rates after the same shift of the log-odds of all tasks, sized so that the mean gain is `gain`."""
    return _sized(rates, gain, lambda shift: 1.0 / (1.0 + (1.0 / rates - 1.0) * np.exp(-shift)), 12.0)


def raised(rates: Floats, gain: float, rng: np.random.Generator) -> Floats:
    """Return the rates after adding the same number to each, cut at 0 and 1, sized so that the mean gain is `gain`."""
    return _sized(rates, gain, lambda shift: np.clip(rates + shift, 0.0, 1.0), 1.0)


def mended(rates: Floats, gain: float, rng: np.random.Generator) -> Floats:
    """Return the rates with tasks drawn at random raised to .95, one after the other, until the mean gain is `gain`."""
    after, left = rates.copy(), np.full(len(rates), gain * rates.shape[1])
    rows = np.arange(len(rates))
    for column in np.argsort(rng.random(rates.shape), axis=1).T:
        step = np.minimum(np.maximum(EASY_RATE - after[rows, column], 0.0), left)
        after[rows, column] += step
        left -= step
    return after


def _sized(rates: Floats, gain: float, moved: Callable[[Floats], Floats], limit: float) -> Floats:
    """Bisect, per run, for the shift that moves the mean rate by `gain`."""
    low, high = np.full((len(rates), 1), -limit), np.full((len(rates), 1), limit)
    for _ in range(50):
        middle = (low + high) / 2.0
        is_short = (moved(middle) - rates).mean(axis=1, keepdims=True) < gain
        low, high = np.where(is_short, middle, low), np.where(is_short, high, middle)
    return moved((low + high) / 2.0)


def tape(rng: np.random.Generator, rates: Floats, trials: int) -> Bools:
    """Draw passes of independent trials, runs x tasks x trials."""
    return rng.random((*rates.shape, trials), dtype=np.float32) < rates[:, :, None].astype(np.float32)


@dataclass(frozen=True)
class Played:
    """How a test ended on each run: accepted or not, and after how many trials of each task."""

    accepted: Bools
    done: Ints

    @property
    def trials(self) -> Floats:
        """Mean trials per task and arm of each run."""
        return np.asarray(self.done.mean(axis=1))


def play(test: SequentialPairedTest, incumbent: Bools, candidate: Bools, alpha: float) -> Played:
    """Play the sequential test on tapes of pass or fail, all runs at once."""
    bounds = test.bounds(alpha)
    runs, tasks, _ = incumbent.shape
    accepted, ended = np.zeros(runs, dtype=bool), np.zeros((runs, tasks), dtype=np.int64)
    racing = np.arange(runs)
    done = np.full((runs, tasks), test.stages[0], dtype=np.int64)
    counts = _Counts.of(incumbent, candidate)
    rest_after = test.design.rest_after or np.inf
    for stage, (accept, futile) in enumerate(zip(bounds.accept_p, bounds.futile_p, strict=True)):
        wins, losses, passes = counts.at(racing, done)
        total_wins, discordant = wins.sum(axis=1), (wins + losses).sum(axis=1)
        p = midp_table(tasks * test.stages[-1])[discordant, total_wins]
        is_accepted = (p <= accept) & (((wins - losses) / done).mean(axis=1) > 0.0)
        accepted[racing[is_accepted]] = True
        ended[racing] = done
        if stage + 1 == len(test.stages):
            break
        rests = (done >= rest_after) & ((passes == 0) | (passes == 2 * done))
        step = test.stages[stage + 1] - test.stages[stage]
        keep = ~is_accepted & (p < futile)
        done = (done + np.where(rests, step // 2, step))[keep]
        racing = racing[keep]
    return Played(accepted, ended)


@dataclass(frozen=True)
class _Counts:
    """Running counts along the trials, with a zero in front: wins, losses, passes of both arms."""

    wins: Counts
    losses: Counts
    passes: Counts

    @classmethod
    def of(cls, incumbent: Bools, candidate: Bools) -> _Counts:
        running = [candidate & ~incumbent, incumbent & ~candidate, incumbent.astype(np.int8) + candidate]
        padded = (np.pad(part, ((0, 0), (0, 0), (1, 0))) for part in running)
        return cls(*(np.cumsum(part, axis=2, dtype=np.int16) for part in padded))

    def at(self, rows: Ints, done: Ints) -> tuple[Counts, Counts, Counts]:
        """Return the counts of the given runs after `done` trials of each task."""
        where = (rows[:, None], np.arange(done.shape[1])[None, :], done)
        return self.wins[where], self.losses[where], self.passes[where]


@lru_cache(maxsize=4)
def midp_table(pairs: int) -> Floats:
    """Return the mid-p of `binomial_midp` for all counts: row n discordant pairs, column of wins."""
    logs = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, pairs + 1)))])
    n, wins = np.arange(pairs + 1)[:, None], np.arange(pairs + 1)[None, :]
    losses = np.maximum(n - wins, 0)
    exponent = logs[n] - logs[wins] - logs[losses] - n * np.log(2.0)
    pmf = np.where(wins <= n, np.exp(np.minimum(exponent, 0.0)), 0.0)
    at_least = np.cumsum(pmf[:, ::-1], axis=1)[:, ::-1]
    return np.asarray(at_least - pmf / 2.0, dtype=float)


def drive(test: GateRule, scores: PairedScores, alpha: float) -> tuple[StageDecision, PairedScores]:
    """Run the real test, stage by stage, on a full table that it may look at only as far as it has asked.

    Returns the last decision and the part of the table that it was made on. Tasks of the guard fold are left out.
    """
    rows = {task.task_id: task for task in scores.fold("train").tasks}
    done = dict.fromkeys(rows, test.stages[0])
    for stage in range(len(test.stages)):
        seen = PairedScores(tuple(first_trials(rows[name], count) for name, count in done.items()))
        decision = test.decide(seen, stage, alpha)
        if decision.outcome != "continue":
            break
        added = test.allocate(seen, stage)
        done = {name: count + added.get(name, 0) for name, count in done.items()}
    return decision, seen


def first_trials(task: TaskScores, count: int) -> TaskScores:
    """Return the task with its first `count` trials."""
    return replace(task, incumbent=task.incumbent[:count], candidate=task.candidate[:count])


def table_of(
    incumbent: Bools, candidate: Bools, *, fold: Fold = "train", families: int = 4, done: Ints | None = None
) -> PairedScores:
    """Build the paired scores of one run from its tapes (tasks x trials), of each task the first `done` trials.

    Families are blocks of tasks of about equal size.
    """
    size = -(-len(incumbent) // families)
    counts = [incumbent.shape[1]] * len(incumbent) if done is None else done.tolist()
    arms = (incumbent.astype(float).tolist(), candidate.astype(float).tolist())
    return PairedScores(
        tuple(
            TaskScores(f"{fold}-{i:04}", f"family-{i // size}", fold, tuple(old[:count]), tuple(new[:count]))
            for i, (old, new, count) in enumerate(zip(*arms, counts, strict=True))
        )
    )
