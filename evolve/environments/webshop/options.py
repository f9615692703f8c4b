"""What a user can set: where the data is, how many tasks, a larger set of products, how titles are compared."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from evolve.environments.options import LIMITS, choice, count, limits_of, refuse_unknown
from evolve.environments.webshop.benchmark import NAME
from evolve.errors import ConfigError
from evolve.records import Split

DEFAULT_LIMITS = {Split.TRAIN: 200, Split.GUARD: 60}
"""Of thousands of training goals; held-out goals are all offered."""
TITLES = ("auto", "nouns", "words")
STEP_LIMIT = 20
KNOWN = ("data", *LIMITS, "products", "goals", "heldout_goals", "titles", "step_limit")


@dataclass(frozen=True, slots=True)
class Options:
    """The options of one environment.

    Attributes:
        limits: how many tasks of a split are offered; a split without one is offered whole.
        products: a documents file as upstream's conversion writes it, in place of the 1,000; needs `goals`.
        goals: a goals file of these products.
        heldout_goals: a goals file of these products whose indices below 500 are held out.
        titles: `nouns`, `words`, or `auto` for nouns where the extra is installed.
    """

    limits: Mapping[Split, int]
    products: Path | None
    goals: Path | None
    heldout_goals: Path | None
    titles: str
    step_limit: int


def read_options(options: Mapping[str, object]) -> Options:
    """Check the options of an environment.

    Raises:
        ConfigError: one is unknown, of the wrong kind, or does not go with the others.
    """
    refuse_unknown(NAME, options, KNOWN)
    products, goals = _file("products", options), _file("goals", options)
    if (products is None) != (goals is None):
        raise ConfigError(f"{NAME}: options products and goals go together, since goals name products of one set")
    if products is None and options.get("heldout_goals") is not None:
        raise ConfigError(f"{NAME}: option heldout_goals goes with products and goals")
    return Options(
        limits=DEFAULT_LIMITS | limits_of(NAME, options),
        products=products,
        goals=goals,
        heldout_goals=_file("heldout_goals", options),
        titles=choice(NAME, "titles", options.get("titles", TITLES[0]), TITLES),
        step_limit=count(NAME, "step_limit", options.get("step_limit", STEP_LIMIT), least=1),
    )


def _file(name: str, options: Mapping[str, object]) -> Path | None:
    value = options.get(name)
    if value is None:
        return None
    if not isinstance(value, str | Path) or not os.path.isfile(Path(value).expanduser()):
        raise ConfigError(f"{NAME}: option {name} must be a file, got {value!r}")
    return Path(value).expanduser()
