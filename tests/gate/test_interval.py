"""The interval of the gain: it covers, it does not depend on names, and families widen it."""

import numpy as np
import pytest

from evolve.gate.interval import by_family, gain_interval
from evolve.gate.scores import TaskScores, table
from evolve.gate.simulate import pass_rates, shifted, table_of, tape


def test_interval_covers_the_true_gain() -> None:
    """Of 200 intervals at 95% for new tasks at least 90% hold the true gain of ten points."""
    rng = np.random.default_rng(6)
    rates = pass_rates(rng, 200, 40)
    arms = zip(tape(rng, rates, 4), tape(rng, shifted(rates, 0.10, rng), 4), strict=True)
    intervals = [gain_interval(table_of(*arm)) for arm in arms]
    assert np.mean([i.low <= 0.10 <= i.high for i in intervals]) >= 0.90


def test_names_and_run_decide_nothing_but_the_stream() -> None:
    """Renamed tasks give the very same interval; another run id another resampling of the same estimate."""
    scores = [(0.0, 1.0), (1.0, 1.0), (1.0, 0.0), (0.0, 1.0), (0.0, 1.0)]
    one, other = (
        table(TaskScores(f"{name}{i}", "f", "train", (old,), (new,)) for i, (old, new) in enumerate(order))
        for name, order in (("a", scores), ("z", scores[::-1]))
    )
    assert gain_interval(one) == gain_interval(other)
    assert gain_interval(one, run_id="r").estimate == pytest.approx(0.4)


def test_families_are_drawn_whole() -> None:
    """Ten copies of four tasks are four pieces of evidence: the interval by family is much wider."""
    rows = [
        TaskScores(f"t{f}{i}", f"f{f}", "train", (0.0,), (1.0 if f < 2 else 0.0,)) for f in range(4) for i in range(10)
    ]
    single, clustered = gain_interval(table(rows)), gain_interval(table(rows), cluster=by_family)
    assert clustered.high - clustered.low > 2 * (single.high - single.low)


def test_one_task_has_no_interval() -> None:
    """With nothing to resample the interval is all there is."""
    interval = gain_interval(table([TaskScores("t", "f", "train", (0.0,), (1.0,))]))
    assert (interval.estimate, interval.low, interval.high) == (1.0, -1.0, 1.0)
    assert str(interval) == "+100.0 points (95% interval -100.0 to +100.0)"
