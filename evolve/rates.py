"""Rates as people read them: one way of rounding, so that a page and a terminal agree in the last digit."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal


def percent(share: float, digits: int = 1) -> str:
    """Return a share of 1 in percent, rounded as one does by hand: 0.0315 is 3.2%, though a float lies below it."""
    rounded = (100 * Decimal(str(float(share)))).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)
    return f"{rounded:f}%"
