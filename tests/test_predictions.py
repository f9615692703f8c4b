"""Predictions of a proposal against what was measured."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from evolve.predictions import PredictionScore, score_predictions
from evolve.records import Layer, Proposal

RATES = st.dictionaries(st.sampled_from("abcdef"), st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]))
NAMES = st.lists(st.sampled_from("abcdefgh"), unique=True).map(tuple)


def proposal(fixed: tuple[str, ...], at_risk: tuple[str, ...] = ()) -> Proposal:
    return Proposal(
        hypothesis="notes help the model", layer=Layer.CONTRACT, pattern_id="p1", predicts_fixed=fixed, at_risk=at_risk
    )


def test_hits_misses_and_surprises_are_told_apart() -> None:
    """A predicted fix that came true, one that did not, and a fix nobody predicted are three different things."""
    before = {"hit": 0.0, "miss": 0.0, "surprise": 0.0, "endangered": 1.0, "safe": 1.0}
    after = {"hit": 1.0, "miss": 0.0, "surprise": 1.0, "endangered": 0.0, "safe": 1.0}
    score = score_predictions(proposal(("miss", "hit"), ("endangered", "safe")), before, after)
    assert score.fixed_hits == ("hit",)
    assert score.fixed_false == ("miss",)
    assert score.fixed_really == ("hit", "surprise")
    assert (score.fixed_precision, score.fixed_recall) == (0.5, 0.5)
    assert (score.broken_predicted, score.broken_hits, score.broken_recall) == (
        ("endangered", "safe"),
        ("endangered",),
        1,
    )


def test_a_small_change_of_a_sampled_model_is_neither_fixed_nor_broken() -> None:
    """Noise below half of the trials moves no task into fixed or broken."""
    score = score_predictions(proposal(("a",)), {"a": 0.25, "b": 0.75}, {"a": 0.5, "b": 0.5})
    assert score.fixed_really == score.broken_really == ()
    assert (score.fixed_precision, score.fixed_recall) == (0.0, None)


def test_unmeasured_tasks_count_neither_way() -> None:
    """A task that was predicted but not run lowers no rate and is listed."""
    score = score_predictions(proposal(("a", "unknown")), {"a": 0.0, "b": 1.0}, {"a": 1.0})
    assert (score.unmeasured, score.fixed_precision) == (("unknown",), 1.0)


@given(RATES, RATES, NAMES, NAMES)
def test_the_score_is_consistent_and_swaps_with_the_arms(
    one: dict[str, float], two: dict[str, float], fixed: tuple[str, ...], at_risk: tuple[str, ...]
) -> None:
    """Hits are predicted and real; swapping the arms swaps fixed and broken; JSON gives the same record back."""
    score = score_predictions(proposal(fixed, at_risk), one, two)
    mirror = score_predictions(proposal(fixed, at_risk), two, one)
    assert set(score.fixed_hits) == set(score.fixed_predicted) & set(score.fixed_really)
    assert (score.fixed_really, score.broken_really) == (mirror.broken_really, mirror.fixed_really)
    assert PredictionScore.model_validate_json(score.model_dump_json()) == score
