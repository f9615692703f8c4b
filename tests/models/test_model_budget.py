"""Limits hold while requests are under way."""

import pytest

from evolve.errors import BudgetSpent
from evolve.models.budget import Budget, estimate
from evolve.models.settings import Price
from evolve.records import Usage

TEN = Usage(prompt_tokens=8, completion_tokens=2)


def test_requests_under_way_count() -> None:
    """What is set aside counts against the limit before it is spent."""
    budget = Budget(tokens=25)
    budget.reserve(TEN)
    budget.reserve(TEN)
    with pytest.raises(BudgetSpent, match="25 tokens"):
        budget.reserve(TEN)


def test_settling_replaces_the_estimate() -> None:
    """A request that used less than was set aside leaves the rest to others."""
    budget = Budget(tokens=25)
    budget.reserve(TEN).settle(Usage(prompt_tokens=1))
    budget.reserve(TEN)
    budget.reserve(TEN)
    assert budget.spent == Usage(prompt_tokens=1)


def test_limit_can_be_reached_exactly() -> None:
    """A limit is what may be spent, not what must not be reached."""
    budget = Budget(tokens=10)
    budget.reserve(TEN).settle(TEN)
    with pytest.raises(BudgetSpent):
        budget.reserve(Usage(prompt_tokens=1))


def test_money_is_limited_apart_from_tokens() -> None:
    """A limit in USD is checked against costs, spent before the run was resumed included."""
    budget = Budget(usd=1.0, spent=Usage(cost_usd=0.8))
    budget.reserve(Usage(cost_usd=0.1))
    with pytest.raises(BudgetSpent, match=r"1 USD is used up: 0\.8 spent"):
        budget.reserve(Usage(cost_usd=0.15))


def test_settling_twice_counts_once() -> None:
    """A reservation is settled by its first usage; leaving its block afterwards adds nothing."""
    budget = Budget(tokens=100)
    with budget.reserve(TEN) as reservation:
        reservation.settle(TEN)
        reservation.settle(TEN)
    assert budget.spent == TEN


def test_no_limits_no_refusals() -> None:
    """A budget without limits only counts."""
    budget = Budget()
    budget.reserve(Usage(prompt_tokens=10**9, cost_usd=1e6)).settle(TEN)
    assert budget.spent == TEN


def test_estimate_is_the_longest_reply() -> None:
    """An estimate takes the prompt by its bytes, the reply at its limit, and the price of both."""
    usage = estimate(3000, {"max_tokens": 500}, Price(prompt=1.0, cached=0.5, completion=2.0))
    assert (usage.prompt_tokens, usage.completion_tokens) == (1000, 500)
    assert usage.cost_usd == pytest.approx(0.002)
    assert estimate(3000, {"max_completion_tokens": 70}, None) == Usage(prompt_tokens=1000, completion_tokens=70)
