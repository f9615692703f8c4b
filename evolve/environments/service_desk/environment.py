"""The environment: card, task lists, the seal on the held-out side, and how a session is opened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path

from evolve.environments.options import LIMITS, limits_of, refuse_unknown
from evolve.environments.seal import require_look, require_loop_split
from evolve.environments.service_desk.cases import NAME, Case
from evolve.environments.service_desk.heldout_tickets import CANARY, heldout_cases
from evolve.environments.service_desk.loop_tickets import loop_cases
from evolve.environments.service_desk.scoring import PASS_MARK
from evolve.environments.service_desk.session import DeskSession
from evolve.environments.source import source_digest
from evolve.errors import UserError
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
            digest=digest_of([source_digest(Path(__file__).parent), [_digest(split) for split in Split]]),
            canary=CANARY,
        )

    def tasks(self, split: LoopSplit) -> Sequence[Task]:
        """List the training or guard tasks.

        Raises:
            SealError: anything else was asked for.
        """
        require_loop_split(NAME, split)
        return [case.task for case in self._offered(split)]

    def heldout_tasks(self, look: Look) -> Sequence[Task]:
        """List the held-out tasks against a recorded look.

        Raises:
            SealError: the look is not for this environment.
        """
        require_look(NAME, look)
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
    refuse_unknown(NAME, options, LIMITS)
    return ServiceDesk(limits_of(NAME, options))


@cache
def _cases(split: Split) -> tuple[Case, ...]:
    """Return all cases of a split. They follow from the code that is loaded, so a process makes them once."""
    return heldout_cases() if split is Split.HELDOUT else loop_cases(split)


@cache
def _digest(split: Split, count: int | None = None) -> str:
    """Return the SHA-256 over the first cases of a split, or all."""
    return digest_of([case.content() for case in _cases(split)[:count]])
