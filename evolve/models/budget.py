"""What asking may cost: money and tokens are reserved before a request and settled after it.

So a limit holds however many requests are under way. Reused completions never come here.
"""

from __future__ import annotations

from types import TracebackType
from typing import NamedTuple

from evolve.errors import BudgetSpent
from evolve.models.settings import Price
from evolve.records import Json, Usage

BYTES_PER_TOKEN = 3  # English text has about four; fewer is the safe side for a reservation
UNKNOWN_REPLY_TOKENS = 1024


class Budget:
    """Limits of one run. For the tasks of one event loop.

    Args:
        usd: None: money is not limited. Where no price is known, money counts only as it is reported.
        tokens: prompt and completion tokens together; None: not limited.
        spent: what the run had used before it was resumed.
    """

    def __init__(self, *, usd: float | None = None, tokens: int | None = None, spent: Usage | None = None) -> None:
        self.usd = usd
        self.tokens = tokens
        self.spent = spent or Usage()
        self._open: set[Reservation] = set()
        self._set_aside = _Sum()

    def reserve(self, expected: Usage) -> Reservation:
        """Set aside what a request may use.

        Raises:
            BudgetSpent: spent, under way and expected together exceed a limit; nothing is set aside.
        """
        needed = self._set_aside.plus(expected).plus(self.spent)
        self._check("USD", self.usd, needed.usd, self.spent.cost_usd or 0.0)
        self._check("tokens", self.tokens, needed.tokens, _tokens(self.spent))
        reservation = Reservation(self, expected)
        self._open.add(reservation)
        self._set_aside = self._set_aside.plus(expected)
        return reservation

    def settle(self, reservation: Reservation, usage: Usage) -> None:
        """Put what a request really used in place of what was set aside. A second time changes nothing."""
        if reservation in self._open:
            self._open.remove(reservation)
            self._set_aside = self._set_aside.less(reservation.expected) if self._open else _Sum()
            self.spent += usage

    @staticmethod
    def _check(unit: str, limit: float | None, needed: float, spent: float) -> None:
        if limit is not None and needed > limit:
            raise BudgetSpent(
                f"the budget of {limit:g} {unit} is used up: {spent:g} spent, "
                f"{needed:g} with the requests under way and the next one at its longest"
            )


class _Sum(NamedTuple):
    """What all open reservations come to, kept up so that a request costs the same however many there are."""

    tokens: int = 0
    usd: float = 0.0

    def plus(self, usage: Usage) -> _Sum:
        return _Sum(self.tokens + _tokens(usage), self.usd + (usage.cost_usd or 0.0))

    def less(self, usage: Usage) -> _Sum:
        return _Sum(self.tokens - _tokens(usage), self.usd - (usage.cost_usd or 0.0))


class Reservation:
    """What is set aside for one request. Leaving its `with` block unsettled gives it back."""

    def __init__(self, budget: Budget, expected: Usage) -> None:
        self.expected = expected
        self._budget = budget

    def settle(self, usage: Usage) -> None:
        """Count what the request really used."""
        self._budget.settle(self, usage)

    def __enter__(self) -> Reservation:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._budget.settle(self, Usage())


def estimate(request_bytes: int, sampling: Json, price: Price | None) -> Usage:
    """Return what a request may use at most: its bytes as tokens, and the longest reply it allows."""
    longest = sampling.get("max_tokens") or sampling.get("max_completion_tokens") or UNKNOWN_REPLY_TOKENS
    usage = Usage(prompt_tokens=request_bytes // BYTES_PER_TOKEN, completion_tokens=int(longest))
    return usage if price is None else usage.model_copy(update={"cost_usd": price.cost_usd(usage)})


def _tokens(usage: Usage) -> int:
    return usage.prompt_tokens + usage.completion_tokens
