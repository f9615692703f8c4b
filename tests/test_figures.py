"""Figures are put in one way wherever they are printed."""

import pytest

from evolve.cli.selftest_text import selftest_text
from evolve.figures import count, duration, interval, moment, money, percent, points


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


def test_numbers_have_their_thousands_apart_and_nouns_their_number():
    """A reader sees at a glance how long a number is."""
    assert [count(n, "token") for n in (0, 1, 999, 1234567)] == [
        "0 tokens",
        "1 token",
        "999 tokens",
        "1,234,567 tokens",
    ]


def test_changes_are_signed_points_per_task():
    """100 points lead from nothing solved to all solved; what was not measured is no zero."""
    assert [points(0.1765), points(-0.05), points(0.0), points(None)] == ["+17.6", "-5.0", "+0.0", "–"]
    assert [interval((0.0784, 0.2745)), interval(None)] == ["+7.8 to +27.5", "–"]


@pytest.mark.parametrize(
    ("iso", "told"),
    [
        ("2026-12-01T00:33:16.118531+00:00", "2026-12-01 00:33:16 UTC"),
        ("2026-12-01T01:33:16+01:00", "2026-12-01 00:33:16 UTC"),
        ("2026-12-01T00:33:16", "2026-12-01 00:33:16 UTC"),
        (None, "–"),
    ],
)
def test_times_of_the_ledger_are_told_to_the_second_in_utc(iso, told):
    """Whatever zone one was written in; a run that goes on has no end yet."""
    assert moment(iso) == told


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(0.0, "0.0 s"), (59.4, "59.4 s"), (61, "1 min 01 s"), (3600 * 3 + 60, "3 h 01 min"), (None, "not finished")],
)
def test_spans_of_time_have_the_units_that_people_use(seconds, told):
    """Seconds, then minutes, then hours."""
    assert duration(seconds) == told


def test_money_that_nobody_priced_is_unknown_and_not_zero():
    """A cost has four digits behind the point: calls of small models cost less than a cent."""
    assert [money(0.00123), money(None)] == ["0.0012 USD", "cost unknown"]
