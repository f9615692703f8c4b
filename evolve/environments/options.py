"""Reads the options of an environment that are of a common kind. A wrong one is a ConfigError that names it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from evolve.errors import ConfigError
from evolve.records import Split

LIMITS = tuple(split.value for split in Split)
"""Options by which a user keeps only the first so many tasks of a split."""


def refuse_unknown(name: str, given: Collection[str], known: Sequence[str]) -> None:
    """Refuse options that an environment does not have.

    Raises:
        ConfigError: there is one; the message lists those that there are.
    """
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise ConfigError(f"{name}: unknown option {', '.join(unknown)}; options are {', '.join(known)}")


def limits_of(name: str, given: Mapping[str, object]) -> dict[Split, int]:
    """Return how many tasks of a split are wanted, for each split of which that is said.

    Raises:
        ConfigError: a limit is no whole number from 0 up.
    """
    return {split: count(name, split.value, given[split.value]) for split in Split if split.value in given}


def count(name: str, option: str, value: object, *, least: int = 0) -> int:
    """Return a whole number.

    Raises:
        ConfigError: it is none, or below the least.
    """
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ConfigError(f"{name}: option {option} must be a whole number from {least} up, got {value!r}")
    return value


def choice(name: str, option: str, value: object, choices: Collection[str]) -> str:
    """Return one of several words.

    Raises:
        ConfigError: it is none of them.
    """
    if not isinstance(value, str) or value not in choices:
        raise ConfigError(f"{name}: option {option} must be one of {', '.join(choices)}, got {value!r}")
    return value


def path(name: str, option: str, value: object) -> Path:
    """Return a path, `~` resolved; whether anything is there is not looked at.

    Raises:
        ConfigError: it is no text.
    """
    if not isinstance(value, str | Path) or not str(value):
        raise ConfigError(f"{name}: option {option} must be a path, got {value!r}")
    return Path(value).expanduser()
