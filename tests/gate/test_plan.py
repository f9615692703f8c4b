"""The plan against simulation, its warnings, and the incumbent against itself."""

import numpy as np
import pytest

from evolve.gate.boundary import boundary, rising
from evolve.gate.plan import operation, plan, plan_greedy, self_check
from evolve.gate.scores import PairedScores, TaskScores, table
from evolve.gate.sequential import SequentialPairedTest
from evolve.gate.simulate import pass_rates, table_of, tape


def test_power_and_reach_agree_with_simulated_paths() -> None:
    """The carried density and 200,000 simulated paths agree within 4 sigma, with and without drift."""
    information = (0.2, 0.5, 1.0)
    bounds = boundary(information=information, futile=rising(-0.5, 1.0, information, 0.5), alpha=0.02, shape=1.5)
    times, count = np.array(information), 200_000
    steps = np.diff(times, prepend=0.0)[:, None]
    noise = np.random.default_rng(4).standard_normal((3, count)) * np.sqrt(steps)
    for drift in (0.0, 2.5):
        z = np.cumsum(noise + drift * steps, axis=0) / np.sqrt(times)[:, None]
        racing, accepted, reached = np.ones(count, dtype=bool), 0.0, []
        for stage in range(3):
            reached.append(racing.mean())
            accepted += float((racing & (z[stage] >= bounds.accept[stage])).mean())
            racing &= (z[stage] < bounds.accept[stage]) & (z[stage] > bounds.futile[stage])
        how = operation(bounds, information, drift)
        assert how.power == pytest.approx(accepted, abs=0.005)
        assert how.reached == pytest.approx(reached, abs=0.005)


def test_null_is_accepted_at_alpha() -> None:
    """Without a gain the power is the false-accept rate, of which the last stage leaves some unspent."""
    test = SequentialPairedTest()
    information = tuple(trials / test.stages[-1] for trials in test.stages)
    assert 0.003 < operation(test.bounds(0.005), information, 0.0).power <= 0.005


def test_more_tasks_and_trials_see_smaller_gains() -> None:
    """The smallest visible gain falls with the root of the tasks, and with the trials."""
    few, many = (plan(tasks=tasks, alpha=0.005) for tasks in (40, 160))
    assert few.smallest_gain == pytest.approx(2 * many.smallest_gain)
    greedy = plan(tasks=40, alpha=0.005, test=SequentialPairedTest(max_trials=1))
    assert greedy.smallest_gain > few.smallest_gain
    assert greedy.trials_if_null == 1.0
    assert few.trials_if_null < few.trials_if_smallest_gain < 24


@pytest.mark.parametrize(
    ("tasks", "wished", "words"),
    [(40, 0.02, "is wished for"), (10, None, "fewer than 20"), (1, None, "would be seen reliably")],
)
def test_a_wish_that_cannot_be_seen_is_warned_of(tasks: int, wished: float | None, words: str) -> None:
    """Too small a wish, too few tasks and a hopeless plan are each warned of in words."""
    test = SequentialPairedTest(max_trials=1)
    assert words in " ".join(plan(tasks=tasks, alpha=0.005, wished_gain=wished, test=test).warnings)


def test_sensible_plan_has_no_warning_and_says_its_numbers() -> None:
    """Forty tasks see ten points, and the plan says so in one sentence."""
    planned = plan(tasks=40, alpha=0.005, wished_gain=0.10)
    assert planned.warnings == ()
    assert "false-accept rate of 0.50%" in str(planned)


def control(lift: float, *, seed: int = 0) -> PairedScores:
    rng = np.random.default_rng(seed)
    rates = pass_rates(rng, 1, 40)
    return table_of(tape(rng, rates, 4)[0], tape(rng, np.clip(rates + lift, 0, 1), 4)[0])


def test_incumbent_agrees_with_itself_and_shows_its_noise() -> None:
    """An A/A control passes and its noise is near the 0.23 of the assumed mix of tasks."""
    check = self_check(control(0.0))
    assert check.is_passed
    assert check.pair_variance == pytest.approx(0.233, abs=0.12)


def test_arms_that_drift_apart_fail_the_control() -> None:
    """A lift in one arm only fails, and the reason says that something besides the harness moves the scores."""
    check = self_check(control(0.25))
    assert not check.is_passed
    assert "besides the harness" in check.reasons[0]


def test_control_without_pairs_fails() -> None:
    """Voids only are no control."""
    check = self_check(table([TaskScores("t", "f", "train", (None,), (None,))]))
    assert not check.is_passed
    assert "No valid pair" in check.reasons[0]


def test_controls_pass_as_often_as_they_should() -> None:
    """Of 200 controls at most 1% + 3 sigma fail."""
    failed = sum(not self_check(control(0.0, seed=seed)).is_passed for seed in range(200))
    assert failed <= 200 * 0.01 + 3 * np.sqrt(200 * 0.01 * 0.99)


@pytest.mark.parametrize(("alpha", "fewest"), [(0.005, (7, 10, 12)), (0.05, (4, 6, 8))])
def test_a_greedy_plan_names_the_results_that_the_gate_accepts(alpha: float, fewest: tuple[int, ...]) -> None:
    """What the plan says is enough is accepted by the test itself, and one task less is not."""
    planned = plan_greedy(tasks=40, alpha=alpha, wished_gain=0.02)
    assert planned.fewest_wins == fewest
    assert planned.smallest_gain == fewest[0] / 40
    assert f"newly solves {fewest[0]} (+{2.5 * fewest[0]:.1f} points) and breaks none" in str(planned)
    assert f"or {fewest[2]} and breaks 2" in str(planned)
    assert "is wished for" in planned.warnings[0]
    for losses, wins in enumerate(fewest):
        assert verdict_on(wins, losses, alpha) == "accept"
        assert verdict_on(wins - 1, losses, alpha) != "accept"


@pytest.mark.parametrize("tasks", [1, 5, 19])
def test_a_greedy_plan_without_room_says_so(tasks: int) -> None:
    """With fewer tasks than the test decides on, no result is promised, and no gain beyond all tasks is named."""
    planned = plan_greedy(tasks=tasks, alpha=0.005, wished_gain=0.1)
    assert (planned.fewest_wins, planned.smallest_gain) == ((), 1.0)
    assert "too few for any candidate to pass the paired test" in str(planned)
    (told,) = planned.warnings
    assert "nothing is accepted automatically" in told


def verdict_on(wins: int, losses: int, alpha: float) -> str:
    same = 40 - wins - losses
    arms = [(0.0, 1.0)] * wins + [(1.0, 0.0)] * losses + [(0.0, 0.0)] * same
    scores = table([TaskScores(f"t{i}", f"f{i}", "train", (one,), (other,)) for i, (one, other) in enumerate(arms)])
    return SequentialPairedTest(max_trials=1).decide(scores, 0, alpha).outcome
