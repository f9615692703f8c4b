"""The goals that tasks are made of, read from a fixed file, and the rule that divides them into splits."""

from __future__ import annotations

import gzip
import hashlib
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import orjson

from evolve.environments.webshop.benchmark import NAME
from evolve.environments.webshop.catalogue import split_categories
from evolve.errors import ConfigError
from evolve.records import Json, Split, Task

GZIP_MARK = b"\x1f\x8b"
HELDOUT_END = 500
TRAINING_START = 1_500
"""Official ranges: test 0 to 499, eval 500 to 1,499 (not used here), train from 1,500 on."""
GUARD_SHARE = 4
"""One product in so many is the guard's."""


@dataclass(frozen=True, slots=True)
class Goal:
    """What a customer wants, and what the scorer knows of it. `options` are (name, value), or the value alone."""

    index: int
    asin: str
    category: str
    query: str
    title: str
    categories: tuple[str, ...]
    instruction: str
    attributes: tuple[str, ...]
    price_limit: float
    options: tuple[tuple[str, str] | str, ...]

    @classmethod
    def read(cls, index: int, goal: Json) -> Goal:
        """Read upstream's form of a goal; KeyError, TypeError or ValueError where it is none."""
        options = goal["goal_options"]
        if not goal["attributes"]:
            raise ValueError(f"goal {index} names no attribute")
        return cls(
            index=index,
            asin=goal["asin"],
            category=goal["category"],
            query=goal["query"],
            title=goal["name"],
            categories=split_categories(goal["product_category"]),
            instruction=goal["instruction_text"],
            attributes=tuple(goal["attributes"]),
            price_limit=float(goal["price_upper"]),
            options=tuple(options.items()) if isinstance(options, dict) else tuple(options),
        )

    def task(self, split: Split) -> Task:
        """Return the goal as a task; its id is the official index."""
        task_id = f"{NAME}-{self.index:05}"
        return Task(task_id=task_id, environment=NAME, split=split, family=self.category, text=self.instruction)


def read_goals(content: bytes, *, source: str) -> tuple[Goal, ...]:
    """Read a goals file: JSON, gzipped or not, a list or an object with `goals` and `first_goal_index`.

    Raises:
        ConfigError: it is no such file.
    """
    try:
        first, goals = listed_goals(content)
        return tuple(Goal.read(index, goal) for index, goal in enumerate(goals, start=first))
    except (OSError, EOFError, KeyError, TypeError, ValueError, AttributeError, zlib.error) as error:
        raise ConfigError(f"{source} is no goals file of {NAME}: {error!r}") from error


def listed_goals(content: bytes) -> tuple[int, list[Json]]:
    """Return the index of the first goal in a goals file, and the goals as they stand there."""
    found = orjson.loads(gzip.decompress(content) if content.startswith(GZIP_MARK) else content)
    return (found["first_goal_index"], found["goals"]) if isinstance(found, dict) else (0, found)


def divide(goals: Iterable[Goal]) -> Mapping[Split, tuple[Goal, ...]]:
    """Divide the official training goals into train and guard, by product.

    Goals of one product differ in their options only, so a product is asked for on one side alone. In each family
    every fourth product by the hash of its id is the guard's. Each side stands in rounds: the first goal of every
    product in official order, then every second one, so that any prefix has as many products as can be.
    """
    training = [goal for goal in goals if goal.index >= TRAINING_START]
    guarded = _guarded_products(training)
    return {
        Split.TRAIN: _in_rounds([goal for goal in training if goal.asin not in guarded]),
        Split.GUARD: _in_rounds([goal for goal in training if goal.asin in guarded]),
    }


def _guarded_products(goals: Iterable[Goal]) -> frozenset[str]:
    families: dict[str, set[str]] = defaultdict(set)
    for goal in goals:
        families[goal.category].add(goal.asin)
    ranked = [sorted(products, key=_hash) for products in families.values()]
    return frozenset(asin for products in ranked for asin in products[GUARD_SHARE - 1 :: GUARD_SHARE])


def _hash(asin: str) -> str:
    return hashlib.sha256(asin.encode()).hexdigest()


def _in_rounds(goals: Sequence[Goal]) -> tuple[Goal, ...]:
    seen: Counter[str] = Counter()
    rounds: dict[int, list[Goal]] = defaultdict(list)
    for goal in goals:
        rounds[seen[goal.asin]].append(goal)
        seen[goal.asin] += 1
    return tuple(goal for number in sorted(rounds) for goal in rounds[number])
