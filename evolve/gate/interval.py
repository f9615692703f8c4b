"""Interval of the mean gain, for people to read. The decision never rests on it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from evolve.figures import percent, points
from evolve.gate.scores import PairedScores, TaskScores

RESAMPLES = 2000


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with its bounds, in score points per task (1.0 = from all failed to all solved)."""

    estimate: float
    low: float
    high: float
    level: float

    def __str__(self) -> str:
        bounds = f"{percent(self.level, 0)} interval {points(self.low)} to {points(self.high)}"
        return f"{points(self.estimate)} points ({bounds})"


def by_task(task: TaskScores) -> str:
    """Cluster of a task that stands alone."""
    return task.task_id


def by_family(task: TaskScores) -> str:
    """Cluster of a task whose family members resemble one another."""
    return task.family


def gain_interval(
    scores: PairedScores, *, level: float = 0.95, cluster: Callable[[TaskScores], str] = by_task, run_id: str = ""
) -> Interval:
    """Return the mean gain with its paired bootstrap interval (percentiles; Efron and Tibshirani 1993, chapter 13).

    Clusters (tasks or families) are drawn with replacement, both arms together. The random stream is derived
    from the sorted numbers and the run id, so neither names nor the order of tasks and trials move it. With fewer
    than two clusters that have a valid pair nothing can be resampled and the interval is -1 to 1.
    """
    groups: dict[str, list[float]] = {}
    for task in scores.tasks:
        if task.difference is not None:
            groups.setdefault(cluster(task), []).append(task.difference)
    if len(groups) < 2:
        return Interval(scores.effect, -1.0, 1.0, level)
    pairs = np.array(sorted((sum(sorted(group)), len(group)) for group in groups.values()))
    draws = _stream(pairs, run_id).integers(0, len(pairs), size=(RESAMPLES, len(pairs)))
    means = pairs[draws, 0].sum(axis=1) / pairs[draws, 1].sum(axis=1)
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return Interval(scores.effect, float(low), float(high), level)


def _stream(numbers: np.ndarray[tuple[int, ...], np.dtype[np.float64]], run_id: str) -> np.random.Generator:
    content = np.round(numbers, 9).tobytes() + run_id.encode()
    return np.random.default_rng(int.from_bytes(hashlib.sha256(content).digest()[:8], "big"))
