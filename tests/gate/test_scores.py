"""The table of paired scores: what it refuses, what a void does, and that order is nothing."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evolve.gate.scores import PairedScores, ScoreError, TaskScores, table


def task(name: str, incumbent: tuple[float | None, ...], candidate: tuple[float | None, ...]) -> TaskScores:
    return TaskScores(name, "family", "train", incumbent, candidate)


@pytest.mark.parametrize("score", [math.nan, math.inf, -0.1, 1.0001])
@pytest.mark.parametrize("arm", ["incumbent", "candidate"])
def test_score_outside_zero_to_one_is_refused(score: float, arm: str) -> None:
    """A score that is no number in [0, 1] is an error that names task, arm and trial."""
    arms = {"incumbent": (1.0, 0.0), "candidate": (1.0, 0.0), arm: (1.0, score)}
    with pytest.raises(ScoreError, match=rf"task 'a', {arm} trial 2"):
        task("a", arms["incumbent"], arms["candidate"])


def test_missing_trial_is_refused() -> None:
    """An arm with fewer trials is an error, not a silent cut: a lost episode must be said to be void."""
    with pytest.raises(ScoreError, match="2 incumbent and 1 candidate"):
        task("a", (1.0, 0.0), (1.0,))


def test_task_twice_is_refused() -> None:
    """The same task may not be counted twice."""
    with pytest.raises(ScoreError, match="twice"):
        table([task("a", (1.0,), (1.0,)), task("a", (0.0,), (1.0,))])


def test_void_in_one_arm_voids_the_pair() -> None:
    """A void leaves the pair out of both arms and is counted."""
    scores = table([task("a", (None, 0.0, 1.0, None), (1.0, 1.0, None, None)), task("b", (0.5,), (0.25,))])
    assert scores.differences == {"a": 1.0, "b": -0.25}
    assert scores.void_share == pytest.approx(3 / 5)
    assert scores.effect == pytest.approx(0.375)
    assert scores.steps().tolist() == [240, -60]


def test_task_without_valid_pair_has_no_difference() -> None:
    """A task of voids only takes no part in the effect, and says so."""
    scores = table([task("a", (None,), (1.0,)), task("b", (0.0,), (1.0,))])
    assert scores.differences == {"b": 1.0}
    assert scores.tasks[0].difference is None


def test_empty_table_has_no_effect_and_no_voids() -> None:
    """Nothing measured is neither a gain nor a failure of the infrastructure."""
    scores = PairedScores(())
    assert (scores.effect, scores.void_share, scores.trials_per_task, scores.pairs) == (0.0, 0.0, 0.0, 0)


@given(st.permutations([task("a", (0.0,), (1.0,)), task("b", (1.0,), (0.0,)), task("c", (0.5,), (0.25,))]))
def test_order_of_arrival_is_nothing(tasks: list[TaskScores]) -> None:
    """Tables of the same tasks are equal in whatever order the tasks came."""
    assert table(tasks) == table(reversed(tasks))


def test_swapping_arms_twice_is_the_identity() -> None:
    """Swapping exchanges the arms and nothing else."""
    scores = table([task("a", (0.0, None), (1.0, 0.5)), task("b", (1.0,), (0.0,))])
    assert scores.swapped().effect == -scores.effect
    assert scores.swapped().swapped() == scores


def test_sums_add_up_the_pairs_of_a_family() -> None:
    """A cluster's sum is that of all its pairs, in 240ths, and clusters come in the order of their names."""
    rows = [
        TaskScores("a", "y", "train", (0.0, 0.0), (1.0, 1.0)),
        TaskScores("b", "y", "train", (1.0,), (0.5,)),
        TaskScores("c", "x", "guard", (1.0,), (0.0,)),
    ]
    assert table(rows).sums(lambda row: row.family).tolist() == [-240, 360]
