"""Rates are rounded in one way wherever they are printed."""

import pytest

from evolve.cli.selftest_text import selftest_text
from evolve.rates import percent


@pytest.mark.parametrize(
    ("share", "digits", "told"),
    [(0.0315, 1, "3.2%"), (0.0345, 1, "3.5%"), (0.125, 0, "13%"), (0.0, 1, "0.0%"), (1, 0, "100%"), (1e-7, 2, "0.00%")],
)
def test_halves_are_rounded_up_as_by_hand(share, digits, told):
    """What a reader rounds from the JSON value is what stands in the text."""
    assert percent(share, digits) == told


def test_selftest_prints_what_a_reader_makes_of_its_json():
    """0.0315 in the document is 3.2% in the table, as in the README."""
    rule = {"false_accept_per_candidate": 0.0041, "false_accept_in_10": 0.0315, "power_5": 0.45, "power_10": 0.9345}
    rule |= {"power_15": 0.99, "trials_per_task_null": 3.4, "trials_per_task_good": 6.5}
    setup = {"tasks": 40, "runs": 4000, "seed": 1, "candidates": 10}
    told = selftest_text({"setup": setup, "rules": {"standard": rule}, "wall_s": 1.0})
    assert "3.2%" in told
    assert "93.5%" in told
