"""The environment: lists the tasks, keeps the held-out ones sealed, opens sessions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from evolve.environments.household.heldout_problems import CANARY, HELDOUT_COUNT, heldout_problems
from evolve.environments.household.loop_problems import GUARD_COUNT, TRAIN_COUNT, loop_problems
from evolve.environments.household.problems import NAME, Problem
from evolve.environments.household.session import HouseholdSession
from evolve.environments.options import refuse_unknown
from evolve.environments.seal import require_look, require_loop_split
from evolve.environments.source import source_digest
from evolve.errors import ConfigError, UserError
from evolve.protocols import EnvironmentCard
from evolve.records import Look, LoopSplit, Split, Task, digest_of

VERSION = "1"
STEP_LIMIT = 14
PASS_MARK = 1.0


@dataclass(frozen=True, slots=True)
class Limits:
    """How many tasks of each split are listed: a prefix, so smaller lists are part of larger ones."""

    train: int = TRAIN_COUNT
    guard: int = GUARD_COUNT
    heldout: int = HELDOUT_COUNT


def create(options: Mapping[str, object]) -> HouseholdEnvironment:
    """Return the household environment.

    Args:
        options: `train`, `guard`, `heldout`: how many tasks of that split to list (default: all).

    Raises:
        ConfigError: an option is unknown, or no whole number from 1 to the size of the split.
    """
    sizes = {"train": TRAIN_COUNT, "guard": GUARD_COUNT, "heldout": HELDOUT_COUNT}
    refuse_unknown(NAME, options, tuple(sizes))
    return HouseholdEnvironment(Limits(**{name: _count(name, options[name], sizes[name]) for name in options}))


def _count(name: str, value: object, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise ConfigError(f"household: option {name} must be a whole number from 1 to {most}, not {value!r}")
    return value


class HouseholdEnvironment:
    """The household's tasks under a step limit of 14 and a pass mark of 1.0."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits

    @cached_property
    def card(self) -> EnvironmentCard:
        """Name, limits and digest; the digest covers code and all tasks, whatever the limits."""
        return EnvironmentCard(
            name=NAME,
            version=VERSION,
            step_limit=STEP_LIMIT,
            pass_mark=PASS_MARK,
            description="Chores in a small text household: find, treat, place and examine objects.",
            digest=digest_of(
                {"code": source_digest(Path(__file__).parent), "tasks": [_digest(split) for split in Split]}
            ),
            canary=CANARY,
        )

    def tasks(self, split: LoopSplit) -> Sequence[Task]:
        """List the training or guard tasks.

        Raises:
            SealError: any other split was asked for.
        """
        require_loop_split(NAME, split)
        return [problem.task for problem in self._listed[split]]

    def heldout_tasks(self, look: Look) -> Sequence[Task]:
        """List the held-out tasks against a recorded look.

        Raises:
            SealError: the look is for another environment.
        """
        require_look(NAME, look)
        return [problem.task for problem in self._heldout]

    def heldout_digest(self) -> str:
        """Return the SHA-256 over the held-out problems that are listed, hidden half included."""
        return _digest(Split.HELDOUT, self._limits.heldout)

    def open(self, task: Task, trial: int) -> HouseholdSession:
        """Open a session on a task. Nothing here is random, so all trials of a task are alike.

        Raises:
            UserError: the task is none that this environment lists.
        """
        problem = self._find(task)
        if problem is None or problem.task != task:
            raise UserError(f"household: {task.task_id} is no task of this environment")
        return HouseholdSession(problem)

    def _find(self, task: Task) -> Problem | None:
        index = self._heldout_by_id if task.split is Split.HELDOUT else self._loop_by_id
        return index.get(task.task_id)

    @cached_property
    def _listed(self) -> dict[Split, tuple[Problem, ...]]:
        return {
            Split.TRAIN: _problems(Split.TRAIN)[: self._limits.train],
            Split.GUARD: _problems(Split.GUARD)[: self._limits.guard],
        }

    @cached_property
    def _heldout(self) -> tuple[Problem, ...]:
        return _problems(Split.HELDOUT)[: self._limits.heldout]

    @cached_property
    def _loop_by_id(self) -> dict[str, Problem]:
        return {problem.task.task_id: problem for listed in self._listed.values() for problem in listed}

    @cached_property
    def _heldout_by_id(self) -> dict[str, Problem]:
        return {problem.task.task_id: problem for problem in self._heldout}


@cache
def _problems(split: Split) -> tuple[Problem, ...]:
    """Return all problems of a split. They follow from the code that is loaded, so a process makes them once."""
    return heldout_problems() if split is Split.HELDOUT else loop_problems(split)


@cache
def _digest(split: Split, count: int | None = None) -> str:
    """Return the SHA-256 over the first problems of a split, or all."""
    return digest_of([problem.as_json() for problem in _problems(split)[:count]])
