"""What can be chosen about the environment, checked: which games, how many, how many steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from evolve.environments.alfworld.benchmark import LOOP_SPLITS, NAME
from evolve.environments.options import LIMITS, choice, count, refuse_unknown

OPTIONS = ("data", "games", *LIMITS, "step_limit")


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
    refuse_unknown(NAME, given, OPTIONS)
    games = choice(NAME, "games", given.get("games", Options().games), LOOP_SPLITS)
    least = {"train": 0, "guard": 0, "heldout": 0, "step_limit": 1}
    counts = {name: count(NAME, name, given[name], least=least[name]) for name in least if name in given}
    return Options(games=games, **counts)
