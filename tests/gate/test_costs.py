"""Costs and faults as truth tables, and acceptance without a gain."""

import pytest

from evolve.gate.costs import ArmCost, cost, fault_rate
from evolve.gate.noninferiority import simplification
from evolve.gate.scores import PairedScores, TaskScores, table


def arm(tokens: float, steps: float, *, solved: int = 10) -> ArmCost:
    return ArmCost(solved=solved, tokens=tokens, steps=steps, wall_s=1.0)


@pytest.mark.parametrize(
    ("tokens", "steps", "gain", "outcome"),
    [
        (1250, 10, 0.0, "pass"),
        (1251, 10, 0.0, "veto"),
        (1000, 13, 0.0, "veto"),
        (1400, 14, 0.20, "pass"),
        (1401, 10, 0.20, "veto"),
    ],
)
def test_dearer_needs_as_much_more_score(tokens: float, steps: float, gain: float, outcome: str) -> None:
    """A quarter more is borne; beyond that a score of .5 must grow by the same factor as the cost."""
    assert cost(arm(1000, 10), arm(tokens, steps), gain=gain, mean_score=0.5).outcome == outcome


def test_nothing_solved_cannot_be_compared() -> None:
    """Costs of solved episodes are not compared where an arm solved none."""
    assert cost(arm(0, 0, solved=0), arm(9e9, 99), gain=0.1, mean_score=0.0).outcome == "pass"


@pytest.mark.parametrize(
    ("before", "after", "episodes", "outcome"),
    [
        (0, 0, 100, "pass"),
        (0, 2, 100, "pass"),
        (0, 3, 100, "veto"),
        (0, 1, 10, "pass"),
        (5, 7, 100, "pass"),
        (0, 0, 0, "pass"),
    ],
)
def test_faults_are_borne_up_to_two_percent_more(before: int, after: int, episodes: int, outcome: str) -> None:
    """Two percent more faulty episodes are borne, and a single faulty episode is never enough."""
    decision = fault_rate(incumbent_faulty=before, candidate_faulty=after, episodes=episodes)
    assert decision.outcome == outcome


def alike(tasks: int, *, worse: int = 0) -> PairedScores:
    return table(TaskScores(f"t{i:02}", "f", "train", (1.0,), (0.0 if i < worse else 1.0,)) for i in range(tasks))


TOKENS = {"incumbent": 1000.0, "candidate": 900.0}


@pytest.mark.parametrize(
    ("scores", "units", "outcome"),
    [
        (alike(40), (5, 4), "pass"),
        (alike(40), (5, 5), "pass"),
        (alike(40), (5, 6), "veto"),
        (alike(40, worse=4), (5, 4), "cannot_tell"),
        (alike(1), (5, 4), "cannot_tell"),
    ],
)
def test_simpler_and_not_worse_is_accepted(scores: PairedScores, units: tuple[int, int], outcome: str) -> None:
    """Fewer units, or as many for fewer tokens, pass if a loss of three points can be ruled out."""
    assert simplification(scores, units=units, tokens=TOKENS).outcome == outcome


def test_as_many_units_and_tokens_are_no_simplification() -> None:
    """Without fewer units or tokens there is nothing to accept."""
    tokens = {"incumbent": 1000.0, "candidate": 1000.0}
    assert simplification(alike(40), units=(5, 5), tokens=tokens).outcome == "veto"
