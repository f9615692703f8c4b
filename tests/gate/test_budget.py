"""The error budget: it never overspends, refunds an accept, and is a function of what was spent."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evolve.errors import ConfigError
from evolve.gate.budget import RUN_ALPHA, ErrorBudget, Policy, Spent, budget_of


def after(policy: Policy, outcomes: list[bool]) -> list[ErrorBudget]:
    budgets = [ErrorBudget(policy)]
    for is_accepted in outcomes:
        budgets.append(budgets[-1].after(is_accepted=is_accepted))
    return budgets


@pytest.mark.parametrize(("policy", "alpha"), [("standard", 0.005), ("strict", 0.001)])
def test_ten_candidates_spend_half_of_the_budget(policy: str, alpha: float) -> None:
    """The first ten candidates get a twentieth of the budget each: 5% (standard) and 1% (strict) in ten."""
    budgets = after(Policy(policy), [False] * 10)
    assert [b.next_alpha for b in budgets[:10]] == pytest.approx([alpha] * 10)
    assert budgets[10].left == pytest.approx(10 * alpha)


@given(st.sampled_from([Policy.STANDARD, Policy.STRICT]), st.lists(st.booleans(), max_size=80))
def test_budget_is_never_overspent_and_never_empty(policy: Policy, outcomes: list[bool]) -> None:
    """Whatever is accepted, the candidates not accepted never spend more than the run's rate, and one more may come."""
    budgets = after(policy, outcomes)
    lost = sum(entry.alpha for entry in budgets[-1].spent if not entry.is_accepted)
    assert lost <= RUN_ALPHA[policy] + 1e-12
    assert all(0 < b.next_alpha <= (b.left or 0) for b in budgets)


def test_accepted_candidate_gives_its_share_back() -> None:
    """After an accept the next candidate has what the accepted one had."""
    first = ErrorBudget(Policy.STANDARD)
    assert first.after(is_accepted=True).next_alpha == first.next_alpha
    assert first.after(is_accepted=True).left == first.left


@given(st.lists(st.booleans(), max_size=30), st.integers(0, 30))
def test_resumed_budget_equals_an_unbroken_one(outcomes: list[bool], cut: int) -> None:
    """A budget rebuilt from the recorded list goes on as if nothing had happened."""
    unbroken = after(Policy.STANDARD, outcomes)[-1]
    resumed = budget_of("standard", after(Policy.STANDARD, outcomes[:cut])[-1].spent)
    for is_accepted in outcomes[cut:]:
        resumed = resumed.after(is_accepted=is_accepted)
    assert resumed == unbroken


def test_explore_has_no_bound_over_the_run() -> None:
    """Explore tests each candidate at 10%, for ever, and says that nothing is committed."""
    budget = after(Policy.EXPLORE, [False] * 50)[-1]
    assert (budget.total, budget.left, budget.next_alpha) == (None, None, 0.10)
    assert "nothing is committed" in str(budget)


def test_what_is_left_is_said() -> None:
    """The budget in words names what is left, of what, and what the next candidate may spend."""
    words = str(after(Policy.STANDARD, [False])[-1])
    assert "9.50% of 10%" in words
    assert "0.50%" in words


@pytest.mark.parametrize("alpha", [-0.1, 1.5, float("nan")])
def test_nonsense_in_the_record_is_refused(alpha: float) -> None:
    """A spent alpha that is no probability is an error."""
    with pytest.raises(ConfigError, match="spent alpha"):
        ErrorBudget(Policy.STANDARD, (Spent(alpha),))


def test_unknown_policy_is_refused() -> None:
    """A policy that does not exist is an error that lists those that do."""
    with pytest.raises(ConfigError, match="explore, standard, strict"):
        budget_of("reckless")
