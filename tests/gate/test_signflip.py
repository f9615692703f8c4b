"""The sign-flip tests against full enumeration and against figures worked out by hand."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evolve.gate.scores import PairedScores, TaskScores, table
from evolve.gate.signflip import binomial_midp, family_p, mcnemar_exact, pair_p, signflip_midp, stratified_z, task_p


def enumerated(steps: list[int]) -> float:
    observed, sizes = sum(steps), [abs(step) for step in steps]
    sums = [
        sum(sign * size for sign, size in zip(signs, sizes, strict=True))
        for signs in itertools.product((1, -1), repeat=len(sizes))
    ]
    return (sum(total > observed for total in sums) + sum(total == observed for total in sums) / 2) / len(sums)


def passes(*rows: tuple[str, str]) -> PairedScores:
    """Build a table from strings of passes (1) and failures (0), one family per two tasks."""
    return table(
        TaskScores(f"t{i}", f"f{i // 2}", "train", tuple(map(float, old)), tuple(map(float, new)))
        for i, (old, new) in enumerate(rows)
    )


@given(st.lists(st.integers(-7, 7), max_size=9))
def test_signflip_equals_enumeration(steps: list[int]) -> None:
    """The p-value is that of listing all sign patterns, whatever the sizes of the steps."""
    assert signflip_midp(np.array(steps, dtype=np.int64)) == pytest.approx(enumerated(steps), abs=1e-10)


@given(st.lists(st.integers(-240, 240), max_size=60))
def test_swapped_arms_mirror_the_p_value(steps: list[int]) -> None:
    """With the arms exchanged the p-value is one minus itself."""
    array = np.array(steps, dtype=np.int64)
    assert signflip_midp(-array) == pytest.approx(1 - signflip_midp(array), abs=1e-9)


def test_mcnemar_by_hand() -> None:
    """Five wins and one loss: P(X >= 5) = 7/64, mid-p = 4/64."""
    assert mcnemar_exact(5, 1) == 7 / 64
    assert binomial_midp(5, 1) == 4 / 64


def test_large_counts_stay_exact() -> None:
    """A thousand discordant pairs neither overflow nor underflow."""
    assert binomial_midp(500, 500) == 0.5
    assert 0.0 < binomial_midp(1000, 0) < 1e-300


def test_no_difference_is_no_evidence() -> None:
    """Identical arms give p = 0.5 and z = 0 exactly."""
    scores = passes(("1100", "1100"), ("0000", "0000"))
    assert (pair_p(scores), task_p(scores), family_p(scores), stratified_z(scores)) == (0.5, 0.5, 0.5, 0.0)


def test_units_of_flipping_differ_as_documented() -> None:
    """Two tasks of one family mended for good: sure for these tasks, open for others, and one family is no evidence."""
    scores = passes(("0000", "1111"), ("0000", "1111"), ("1111", "1111"))
    assert pair_p(scores) == 1 / 2**9
    assert task_p(scores) == 1 / 8
    assert family_p(scores) == 1 / 4


def test_stratified_z_is_that_of_cochran_mantel_haenszel() -> None:
    """z = sum(2 b_i - t_i) / sqrt(sum t_i (2n - t_i) / (2n - 1)) for passes and failures."""
    scores = passes(("1100", "1110"), ("0000", "1000"), ("1111", "1111"))
    by_hand = (1 + 1) / np.sqrt(5 * 3 / 7 + 1 * 7 / 7)
    assert stratified_z(scores) == pytest.approx(by_hand)
