"""How long to wait before an endpoint is asked again."""

import email.utils
import time

import pytest

from evolve.models.retry import Attempt, Transient, seconds_until


@pytest.mark.parametrize(("number", "longest"), [(1, 0.5), (2, 1.0), (3, 2.0), (20, 30.0)])
def test_waits_grow_up_to_a_limit(number: int, longest: float) -> None:
    """Each wait is twice the one before, less up to a quarter, and never longer than the limit."""
    waits = {Attempt(number, None).delay_s for _ in range(20)}
    assert 0.75 * longest <= min(waits) <= max(waits) <= longest
    assert len(waits) > 1


def test_endpoint_decides_within_reason() -> None:
    """What an endpoint asks for goes before the growing wait, up to two minutes."""
    assert Attempt(1, 7.0).delay_s == 7.0
    assert Attempt(1, 86_400.0).delay_s == 120.0


def test_retry_after_is_a_number_or_a_date() -> None:
    """Both forms of the header are read; a date that is past is now; anything else is as if it were not there."""
    assert seconds_until("1.5") == 1.5
    assert seconds_until(email.utils.formatdate(time.time() + 60, usegmt=True)) == pytest.approx(60, abs=2)
    assert seconds_until(email.utils.formatdate(time.time() - 60, usegmt=True)) == 0.0
    assert Transient("busy", retry_after="soon").retry_after_s is None


@pytest.mark.parametrize("header", ["nan", "inf", "-3"])
def test_odd_numbers_do_no_harm(header: str) -> None:
    """Not-a-number, infinity and negative times give a wait that can be slept."""
    assert 0.0 <= Attempt(1, seconds_until(header)).delay_s <= 120.0
