"""The environment: card, task lists, the seal on the held-out side, and how a session is opened."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path

from evolve.environments.service_desk.cases import NAME, Case
from evolve.environments.service_desk.heldout_tickets import CANARY, heldout_cases
from evolve.environments.service_desk.loop_tickets import loop_cases
from evolve.environments.service_desk.scoring import PASS_MARK
from evolve.environments.service_desk.session import DeskSession
from evolve.errors import ConfigError, SealError, UserError
from evolve.protocols import EnvironmentCard
from evolve.records import Look, LoopSplit, Split, Task, digest_of

STEP_LIMIT = 10


class ServiceDesk:
    """Tickets of a shop's desk under a written policy. `limits` cut the task lists to a prefix."""

    def __init__(self, limits: Mapping[Split, int]) -> None:
        self._limits = limits

    @cached_property
    def card(self) -> EnvironmentCard:
        """Name, limits and a digest over the package's source and all generated cases, whatever the limits."""
        return EnvironmentCard(
            name=NAME,
            version="2",
            step_limit=STEP_LIMIT,
            pass_mark=PASS_MARK,
            description="Orders and subscriptions at a service desk under a written policy",
            digest=digest_of([_source_digest(), [_digest(split) for split in Split]]),
            canary=CANARY,
        )

    def tasks(self, split: LoopSplit) -> Sequence[Task]:
        """List the training or guard tasks.

        Raises:
            SealError: anything else was asked for.
        """
        if split not in (Split.TRAIN, Split.GUARD):
            raise SealError(f"{NAME}: the {split} tasks are listed against a recorded look only")
        return [case.task for case in self._offered(split)]

    def heldout_tasks(self, look: Look) -> Sequence[Task]:
        """List the held-out tasks against a recorded look.

        Raises:
            SealError: the look is not for this environment.
        """
        if look.environment != NAME:
            raise SealError(f"look {look.look_id} is for {look.environment}, not for {NAME}")
        return [case.task for case in self._offered(Split.HELDOUT)]

    def heldout_digest(self) -> str:
        """Return the SHA-256 of the held-out cases on offer."""
        return _digest(Split.HELDOUT, self._limits.get(Split.HELDOUT))

    def open(self, task: Task, trial: int) -> DeskSession:
        """Open a session; all trials of a task are alike, since nothing here is random.

        Raises:
            UserError: the task is none of this environment's.
        """
        cases = self._heldout_by_id if task.split is Split.HELDOUT else self._loop_by_id
        case = cases.get(task.task_id)
        if case is None or case.task != task:
            raise UserError(f"{task.task_id} is no task of {NAME} under its present options")
        return DeskSession(task.text, case.draft)

    def _offered(self, split: Split) -> tuple[Case, ...]:
        cases = self._heldout if split is Split.HELDOUT else self._loop[split]
        return cases[: self._limits.get(split, len(cases))]

    @cached_property
    def _loop(self) -> dict[Split, tuple[Case, ...]]:
        return {Split.TRAIN: _cases(Split.TRAIN), Split.GUARD: _cases(Split.GUARD)}

    @cached_property
    def _heldout(self) -> tuple[Case, ...]:
        return _cases(Split.HELDOUT)

    @cached_property
    def _loop_by_id(self) -> dict[str, Case]:
        return {case.task.task_id: case for split in self._loop for case in self._offered(split)}

    @cached_property
    def _heldout_by_id(self) -> dict[str, Case]:
        return {case.task.task_id: case for case in self._offered(Split.HELDOUT)}


def create(options: Mapping[str, object]) -> ServiceDesk:
    """Make the environment; `train`, `guard` and `heldout` limit a task list to its first so many tasks.

    Raises:
        ConfigError: an unknown option, or a limit that is no whole number from 0 up.
    """
    names = [split.value for split in Split]
    unknown = sorted(set(options) - set(names))
    if unknown:
        raise ConfigError(f"{NAME}: unknown option {', '.join(unknown)}; options are {', '.join(names)}")
    return ServiceDesk({Split(name): _limit(name, value) for name, value in options.items()})


def _limit(name: str, value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ConfigError(f"{NAME}: option {name} must be a whole number from 0 up, got {value!r}")
    return value


@cache
def _cases(split: Split) -> tuple[Case, ...]:
    """Return all cases of a split. They follow from the code that is loaded, so a process makes them once."""
    return heldout_cases() if split is Split.HELDOUT else loop_cases(split)


@cache
def _digest(split: Split, count: int | None = None) -> str:
    """Return the SHA-256 over the first cases of a split, or all."""
    return digest_of([case.content() for case in _cases(split)[:count]])


def _source_digest() -> str:
    """Return the SHA-256 over the source files of this package as they lie on the disk now."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.sha256(b"\0".join(file.name.encode() + b"\0" + file.read_bytes() for file in files)).hexdigest()
