"""The guards: a gain carries over or not, groups regress and single tasks do not, small folds are honest."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evolve.gate.guards import carry_over, confirmation, once_fixed, regression
from evolve.gate.scores import Fold, PairedScores, TaskScores, table


def rows(count: int, old: str, new: str, *, family: str = "f", fold: Fold = "train") -> list[TaskScores]:
    arms = (tuple(map(float, old)), tuple(map(float, new)))
    return [TaskScores(f"{fold}-{family}-{i:02}", family, fold, *arms) for i in range(count)]


@pytest.mark.parametrize(
    ("tasks", "mended", "outcome", "words"),
    [
        (20, 4, "pass", "+20.0 points"),
        (20, 2, "pass", "+10.0 points"),
        (20, 1, "veto", "does not carry over"),
        (20, 0, "veto", "does not carry over"),
        (10, 1, "pass", "+10.0 points"),
        (9, 9, "cannot_tell", "too few"),
        (0, 0, "cannot_tell", "too few"),
    ],
)
def test_a_third_of_the_gain_must_carry_over(tasks: int, mended: int, outcome: str, words: str) -> None:
    """A train gain of 24 points needs 8 on the guard fold; below 10 guard tasks nothing can be said."""
    guard = rows(mended, "0", "1", fold="guard", family="a") + rows(tasks - mended, "0", "0", fold="guard")
    decision = carry_over(table(guard + rows(30, "0", "1")), train_gain=0.24)
    assert decision.outcome == outcome
    assert words in decision.reasons[0]


def test_no_gain_on_guard_tasks_never_carries_over() -> None:
    """Even a train gain of next to nothing needs a gain above zero."""
    assert carry_over(table(rows(20, "01", "10", fold="guard")), train_gain=0.0).outcome == "veto"


def test_group_that_drops_vetoes() -> None:
    """A family in which most tasks get worse vetoes, although the whole got better, and the reason names it."""
    scores = table(rows(20, "000", "111", family="up") + rows(8, "111", "100", family="down"))
    decision = regression(scores)
    assert decision.outcome == "veto"
    assert "8 tasks of down got worse by 66.7 points" in decision.reasons[0]


@given(
    st.lists(st.sampled_from(["000", "011", "111"]), min_size=3, max_size=12),
    st.integers(1, 40),
    st.sampled_from(["f", "alone"]),
)
def test_one_task_never_vetoes(others: list[str], trials: int, family: str) -> None:
    """However often one task fails, it vetoes nothing while the others hold, in a family or alone."""
    noisy = TaskScores("noisy", family, "train", (1.0,) * trials, (0.0,) * trials)
    still = [row for i, arm in enumerate(others) for row in rows(1, arm, arm, family="f") if not i] + [
        TaskScores(f"still-{i}", "f", "train", tuple(map(float, arm)), tuple(map(float, arm)))
        for i, arm in enumerate(others)
    ]
    assert regression(table([noisy, *still])).outcome == "pass"
    assert once_fixed(table([noisy, *still]), {"noisy"}).outcome == "pass"


def test_small_families_are_judged_together() -> None:
    """Ten families of one task each that all drop are one group, and it vetoes."""
    scores = table([row for i in range(10) for row in rows(1, "11", "00", family=f"f{i}")])
    decision = regression(scores)
    assert decision.outcome == "veto"
    assert "small families together" in decision.reasons[0]


def test_once_fixed_tasks_that_break_again_veto() -> None:
    """The suite is judged as one group, whatever families its tasks belong to."""
    broken = [row for i in range(6) for row in rows(1, "11", "00", family=f"f{i}")]
    scores = table(broken + rows(20, "00", "11", family="good"))
    assert once_fixed(scores, {row.task_id for row in broken}).outcome == "veto"
    assert once_fixed(scores, {"train-good-00", "train-good-01"}).outcome == "pass"
    assert once_fixed(scores, set()).outcome == "pass"


def test_gain_must_show_again_on_fresh_trials() -> None:
    """Fresh trials with any gain confirm; without one nothing is committed, and the claim stands beside the find."""
    assert confirmation(table(rows(20, "0000", "0001")), claimed=0.4).outcome == "pass"
    decision = confirmation(table(rows(20, "0101", "1010")), claimed=0.4)
    assert decision.outcome == "cannot_tell"
    assert "+40.0 was claimed" in decision.reasons[0]


def test_nothing_measured_is_no_regression() -> None:
    """An empty table has no group to veto with."""
    assert regression(PairedScores(())).outcome == "pass"
