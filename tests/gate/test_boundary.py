"""The bounds of the sequential test: they cost what they should, and a single stage is the fixed-sample test."""

import numpy as np
import pytest

from evolve.gate.boundary import boundary, rising
from evolve.gate.normal import upper_tail, z_of
from evolve.gate.sequential import SequentialPairedTest

INFORMATION = (0.125, 0.25, 0.5, 1.0)


@pytest.mark.parametrize("shape", [1.0, 3.0])
def test_null_paths_cross_with_probability_alpha(shape: float) -> None:
    """Simulated paths without drift cross with the spent probability, within 4 sigma; the last stage with less."""
    futile = rising(-0.5, 1.0, INFORMATION, 0.5)
    bounds = boundary(information=INFORMATION, futile=futile, alpha=0.05, shape=shape)
    count = 400_000
    draws = np.random.default_rng(3).standard_normal((4, count))
    times = np.array(INFORMATION)
    paths = np.cumsum(draws * np.sqrt(np.diff(times, prepend=0.0))[:, None], axis=0) / np.sqrt(times)[:, None]
    racing, crossed = np.ones(count, dtype=bool), 0
    for stage, t in enumerate(INFORMATION):
        crossing = racing & (paths[stage] >= bounds.accept[stage])
        crossed += int(crossing.sum())
        excess = crossed / count - 0.05 * t**shape
        tolerance = 4 * np.sqrt(0.05 * t**shape / count)
        assert abs(excess) < tolerance if t < 1.0 else excess < tolerance
        racing &= ~crossing & (paths[stage] > bounds.futile[stage])


def test_single_stage_is_the_fixed_test() -> None:
    """With one stage the bound is the quantile of the normal distribution."""
    bounds = boundary(information=(1.0,), futile=(0.0,), alpha=0.005, shape=2.0)
    assert bounds.accept_p[0] == pytest.approx(0.005, rel=1e-9)


def test_one_percent_accuracy_of_the_quadrature() -> None:
    """Without futility stops, equal looks and shape 1 the levels agree with a path count to about their noise."""
    bounds = boundary(information=(0.5, 1.0), futile=(-9.0, -9.0), alpha=0.05, shape=1.0)
    assert bounds.accept_p[0] == pytest.approx(0.025, rel=1e-6)
    pair = np.random.default_rng(5).standard_normal((2, 1_000_000))
    last = (pair[0] + pair[1]) / np.sqrt(2)
    crossed = np.mean((pair[0] >= bounds.accept[0]) | (last >= bounds.accept[1]))
    assert crossed == pytest.approx(0.05, abs=4 * np.sqrt(0.05 * 0.95 / 1_000_000))


def test_no_stage_accepts_above_alpha_and_futility_stays_below() -> None:
    """Whatever alpha and however many trials, no stage is laxer than one shot, and futility never meets acceptance."""
    for alpha in (1e-5, 0.001, 0.005, 0.05, 0.10, 0.20):
        for trials in (1, 2, 3, 5, 8, 24):
            bounds = SequentialPairedTest(max_trials=trials).bounds(alpha)
            assert max(bounds.accept_p) <= alpha * (1 + 1e-9)
            assert all(stop < go for stop, go in zip(bounds.futile, bounds.accept, strict=True))


def test_futility_that_leaves_nothing_is_refused() -> None:
    """A futility bound at or above the acceptance bound is an error, not a silent test that never accepts."""
    with pytest.raises(ValueError, match="leaves nothing"):
        boundary(information=(0.5, 1.0), futile=(4.0, 4.0), alpha=0.05, shape=1.0)


def test_alpha_must_be_a_probability() -> None:
    """An alpha of 0, or of 1 and more, has no bounds."""
    for alpha in (0.0, 1.0):
        with pytest.raises(ValueError, match="not between 0 and 1"):
            boundary(information=(1.0,), futile=(0.0,), alpha=alpha, shape=1.0)


def test_tail_and_quantile_are_inverse() -> None:
    """z_of undoes upper_tail."""
    assert upper_tail(z_of([0.001, 0.5, 0.9])) == pytest.approx([0.001, 0.5, 0.9])
