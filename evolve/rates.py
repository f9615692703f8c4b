"""Rates as people read them, with their intervals: rounded in one way, so that page and terminal agree."""

from __future__ import annotations

import math
from decimal import ROUND_HALF_UP, Decimal

Z95 = 1.959963984540054


def percent(share: float, digits: int = 1) -> str:
    """Return a share of 1 in percent, rounded as one does by hand: 0.0315 is 3.2%, though a float lies below it."""
    rounded = (100 * Decimal(str(float(share)))).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)
    return f"{rounded:f}%"


def wilson(successes: int, n: int) -> tuple[float, float]:
    """Return the 95% Wilson score interval of a rate; (0, 1) where nothing was measured.

    Source: E. B. Wilson 1927, J. Am. Stat. Assoc. 22:209.
    """
    if n == 0:
        return 0.0, 1.0
    rate, z2 = successes / n, Z95 * Z95
    centre = (rate + z2 / (2 * n)) / (1 + z2 / n)
    half = Z95 / (1 + z2 / n) * math.sqrt(rate * (1 - rate) / n + z2 / (4 * n * n))
    return max(0.0, centre - half), min(1.0, centre + half)
