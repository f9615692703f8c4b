"""When to ask an endpoint again, and how long to wait before. Sends nothing itself."""

from __future__ import annotations

import email.utils
import random
import time
from dataclasses import dataclass

FIRST_DELAY_S = 0.5
LONGEST_BACKOFF_S = 30.0
LONGEST_RETRY_AFTER_S = 120.0


class Transient(Exception):
    """One attempt failed in a way that another attempt may mend."""

    def __init__(self, message: str, *, retry_after: str | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = None if retry_after is None else seconds_until(retry_after)


@dataclass(frozen=True, slots=True)
class Attempt:
    """A further attempt: its number from 1, and what the endpoint asked for (None: nothing)."""

    number: int
    retry_after_s: float | None

    @property
    def delay_s(self) -> float:
        """How long to wait: what the endpoint asked for, else twice as long each time, less up to a quarter."""
        if self.retry_after_s is not None:
            return min(self.retry_after_s, LONGEST_RETRY_AFTER_S)
        longest: float = min(FIRST_DELAY_S * 2.0 ** (self.number - 1), LONGEST_BACKOFF_S)
        return longest * random.SystemRandom().uniform(0.75, 1.0)


def seconds_until(retry_after: str) -> float | None:
    """Return the seconds that a Retry-After header names: a number or a date. None where it is neither."""
    try:
        return max(0.0, float(retry_after))
    except ValueError:
        pass
    try:
        return max(0.0, email.utils.parsedate_to_datetime(retry_after).timestamp() - time.time())
    except ValueError:
        return None
