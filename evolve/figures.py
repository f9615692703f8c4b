"""Figures as people read them: counts, rates, points, money and times, put in one way on terminal, page and log."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import ROUND_HALF_UP, Decimal

NOTHING = "–"
"""Stands where there is no value."""


def grouped(number: int) -> str:
    """Return a whole number with its thousands apart: 12,345."""
    return f"{number:,}"


def count(number: int, noun: str) -> str:
    """Return a number with its noun: 1 task, 2,000 tasks."""
    return f"{grouped(number)} {noun}" if number == 1 else f"{grouped(number)} {noun}s"


def percent(share: float, digits: int = 1) -> str:
    """Return a share of 1 in percent, rounded as one does by hand: 0.0315 is 3.2%, though a float lies below it."""
    rounded = (100 * Decimal(str(float(share)))).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)
    return f"{rounded:f}%"


def points(change: float | None) -> str:
    """Return a change of score as signed points per task, 100 points being from all failed to all solved."""
    return NOTHING if change is None else f"{100 * change:+.1f}"


def interval(bounds: tuple[float, float] | None) -> str:
    """Return an interval of changes in points per task."""
    return NOTHING if bounds is None else f"{points(bounds[0])} to {points(bounds[1])}"


def money(cost_usd: float | None) -> str:
    """Return a cost in US dollars; unknown where no price is configured."""
    return "cost unknown" if cost_usd is None else f"{cost_usd:.4f} USD"


def duration(seconds: float | None) -> str:
    """Return a time span as people say it."""
    if seconds is None:
        return "not finished"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {rest:02d} s" if minutes else f"{seconds:.1f} s"


def moment(iso: str | None) -> str:
    """Return a time of the ledger (ISO 8601) to the second, in UTC."""
    return NOTHING if iso is None else f"{parse_time(iso).astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def parse_time(iso: str) -> datetime:
    """Read a time of the ledger (ISO 8601); one without a zone is in UTC."""
    read = datetime.fromisoformat(iso)
    return read if read.tzinfo else read.replace(tzinfo=UTC)
