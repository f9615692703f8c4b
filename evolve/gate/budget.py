"""One false-accept rate for all candidates of a run. A pure function of what was spent, so it survives a resume."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from evolve.errors import ConfigError
from evolve.figures import percent

PLANNED = 20  # candidates that the budget of a run is laid out for
FLOOR = 10  # from here on each candidate may spend a tenth of what is left, so that the budget never runs dry


class Policy(StrEnum):
    """How sure a run wants to be. `explore` has no budget over the run and never commits to the user's branch."""

    EXPLORE = "explore"
    STANDARD = "standard"
    STRICT = "strict"


RUN_ALPHA = {Policy.STANDARD: 0.10, Policy.STRICT: 0.02}
EXPLORE_ALPHA = 0.10  # per candidate


@dataclass(frozen=True, slots=True)
class Spent:
    """What one candidate cost the budget. Only candidates that reached the paired test spend."""

    alpha: float
    is_accepted: bool = False


@dataclass(frozen=True, slots=True)
class ErrorBudget:
    """The error budget of a run after the candidates in `spent`.

    The family-wise error is held by alpha spending over candidates: the alphas of a run never sum to more than the
    run's alpha, whatever the outcomes (Foster and Stine 2008, JRSS B 70:429 for the order in time). The alpha of an
    accepted candidate goes back: if it was truly better, it was no null and cost nothing; if it was not, the error
    has been made already (Tian and Ramdas 2021, Stat Med 40:1689, "online fallback").
    """

    policy: Policy
    spent: tuple[Spent, ...] = ()

    def __post_init__(self) -> None:
        for entry in self.spent:
            if not (math.isfinite(entry.alpha) and 0.0 <= entry.alpha <= 1.0):
                raise ConfigError(f"spent alpha {entry.alpha!r} is not a number from 0 to 1")

    @property
    def total(self) -> float | None:
        """The run's false-accept rate; None under `explore`, which has none."""
        return RUN_ALPHA.get(self.policy)

    @property
    def left(self) -> float | None:
        """What later candidates can still spend; None under `explore`."""
        if self.total is None:
            return None
        return max(0.0, self.total - math.fsum(entry.alpha for entry in self.spent if not entry.is_accepted))

    @property
    def next_alpha(self) -> float:
        """The false-accept rate of the next candidate: what is left, over the candidates still planned (10 or more)."""
        if self.left is None:
            return EXPLORE_ALPHA
        return self.left / max(PLANNED - self._used, FLOOR)

    @property
    def _used(self) -> int:
        return sum(1 for entry in self.spent if not entry.is_accepted)

    def after(self, *, is_accepted: bool) -> ErrorBudget:
        """Return the budget after the next candidate was tested at `next_alpha`."""
        return ErrorBudget(self.policy, (*self.spent, Spent(self.next_alpha, is_accepted)))

    def __str__(self) -> str:
        if self.left is None or self.total is None:
            return f"policy explore: each candidate at {EXPLORE_ALPHA:.0%}, no bound over the run, nothing is committed"
        candidates = "1 candidate" if len(self.spent) == 1 else f"{len(self.spent)} candidates"
        return (
            f"policy {self.policy}: {percent(self.left, 2)} of {percent(self.total, 0)} false-accept rate left after "
            f"{candidates}; the next one may spend {percent(self.next_alpha, 2)}"
        )


def budget_of(policy: str, spent: Sequence[Spent] = ()) -> ErrorBudget:
    """Build the budget of a policy by name.

    Raises:
        ConfigError: there is no such policy.
    """
    try:
        return ErrorBudget(Policy(policy), tuple(spent))
    except ValueError:
        raise ConfigError(f"gate policy {policy!r} is none of {', '.join(Policy)}") from None
