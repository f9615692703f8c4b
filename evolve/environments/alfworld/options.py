"""What can be chosen about the environment, checked: which games, how many, how many steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from evolve.environments.alfworld.benchmark import LOOP_SPLITS, NAME
from evolve.errors import ConfigError

OPTIONS = ("data", "games", "train", "guard", "heldout", "step_limit")


@dataclass(frozen=True, slots=True)
class Options:
    """Checked options.

    Attributes:
        games: the official split that train and guard are taken from.
        train, guard, heldout: how many tasks are listed; None lists all.
        step_limit: 50 is the official one; AgentBench plays with 20.
    """

    games: str = "train"
    train: int | None = 48
    guard: int | None = 24
    heldout: int | None = None
    step_limit: int = 50


def read_options(given: Mapping[str, object]) -> Options:
    """Check the options of the configuration; `data` is left to `BenchmarkData`.

    Raises:
        ConfigError: an option is unknown or has a wrong value.
    """
    unknown = sorted(set(given) - set(OPTIONS))
    if unknown:
        raise ConfigError(f"{NAME}: unknown option {', '.join(unknown)}; options are {', '.join(OPTIONS)}")
    games = given.get("games", Options().games)
    if not isinstance(games, str) or games not in LOOP_SPLITS:
        raise ConfigError(f"{NAME}: option games must be one of {', '.join(LOOP_SPLITS)}, got {games!r}")
    least = {"train": 0, "guard": 0, "heldout": 0, "step_limit": 1}
    counts = {name: _count(name, given[name], least[name]) for name in least if name in given}
    return Options(games=games, **counts)


def _count(name: str, value: object, least: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ConfigError(f"{NAME}: option {name} must be a whole number from {least} up, got {value!r}")
    return value
