"""The clock that stamps commits and rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from evolve.errors import ConfigError


def utc_now() -> datetime:
    """Return the present time."""
    return datetime.now(UTC)


def clock_of(environ: Mapping[str, str]) -> Callable[[], datetime]:
    """Return the clock of the ledger. SOURCE_DATE_EPOCH stops it, so that equal runs make equal commits.

    Raises:
        ConfigError: SOURCE_DATE_EPOCH is no whole number of seconds.
    """
    pinned = environ.get("SOURCE_DATE_EPOCH")
    if not pinned:
        return utc_now
    if not pinned.isascii() or not pinned.isdigit():
        raise ConfigError(f"SOURCE_DATE_EPOCH is {pinned!r}; it is a whole number of seconds since 1970, or not set")
    moment = datetime.fromtimestamp(int(pinned), UTC)
    return lambda: moment
