"""The environment: card, task lists, the seal on the held-out side, and how a session is opened."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

from evolve.environments.data import BenchmarkData
from evolve.environments.options import LIMITS, choice, limits_of, refuse_unknown
from evolve.environments.os_interaction.benchmark import BENCHMARK, DEV, STD, TRAIN
from evolve.environments.os_interaction.problems import Problem, divided, read_problems
from evolve.environments.os_interaction.rootfs import NAME, Rootfs, chosen_rootfs
from evolve.environments.os_interaction.sandbox import Sandbox, require_sandbox
from evolve.environments.os_interaction.scoring import PASS_MARK, VERSION
from evolve.environments.os_interaction.session import OsSession
from evolve.environments.seal import require_look, require_loop_split
from evolve.environments.source import source_digest
from evolve.errors import ConfigError, UserError
from evolve.protocols import EnvironmentCard
from evolve.records import Look, LoopSplit, Split, Task, digest_of

STEP_LIMIT = 8
TIMEOUT_S = 30.0
SETS = {"train": TRAIN, "dev": DEV}
OPTIONS = ("data", "rootfs", "set", "timeout_s", *LIMITS)


class OsInteraction:
    """OS interaction over one root file system.

    Args:
        open_file: the file whose tasks train and guard.
        timeout_s: what each script may take.
        limits: cut the task lists to a prefix.
    """

    def __init__(
        self,
        files: BenchmarkData,
        rootfs: Rootfs,
        limits: Mapping[Split, int],
        *,
        open_file: str = TRAIN,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        self._files = files
        self._rootfs = rootfs
        self._limits = limits
        self._open_file = open_file
        self._timeout_s = timeout_s

    @classmethod
    def from_options(cls, options: Mapping[str, object]) -> OsInteraction:
        """Make the environment.

        Raises:
            ConfigError: an unknown option, a value of the wrong kind, or something that sandboxes need is missing.
        """
        refuse_unknown(NAME, options, OPTIONS)
        limits = limits_of(NAME, options)
        files = BenchmarkData(BENCHMARK, options.get("data"))
        open_file = SETS[choice(NAME, "set", options.get("set", "train"), SETS)]
        timeout_s = _timeout(options.get("timeout_s", TIMEOUT_S))
        require_sandbox()
        return cls(files, chosen_rootfs(options), limits, open_file=open_file, timeout_s=timeout_s)

    @cached_property
    def card(self) -> EnvironmentCard:
        """Name, limits and a digest over source, open tasks, root file system and time limit, whatever the limits."""
        tasks = hashlib.sha256(self._files.read(self._open_file)).hexdigest()
        return EnvironmentCard(
            name=NAME,
            version=VERSION,
            step_limit=STEP_LIMIT,
            pass_mark=PASS_MARK,
            description="A question about a Linux machine, or a change to it, by bash (AgentBench OS interaction)",
            digest=digest_of([source_digest(Path(__file__).parent), tasks, self._rootfs.digest, self._timeout_s]),
            is_blocking=True,
        )

    def tasks(self, split: LoopSplit) -> Sequence[Task]:
        """List the training or guard tasks.

        Raises:
            SealError: anything else was asked for.
        """
        require_loop_split(NAME, split)
        return [problem.task(split) for problem in self._offered(split)]

    def heldout_tasks(self, look: Look) -> Sequence[Task]:
        """List the held-out tasks against a recorded look.

        Raises:
            SealError: the look is not for this environment.
            ConfigError: os_std.jsonl is not here.
        """
        require_look(NAME, look)
        return [problem.task(Split.HELDOUT) for problem in self._offered(Split.HELDOUT)]

    def heldout_digest(self) -> str | None:
        """Return the SHA-256 of the held-out tasks on offer; None where os_std.jsonl is not here."""
        if not self._files.has(STD):
            return None
        return digest_of([repr(problem) for problem in self._offered(Split.HELDOUT)])

    def problem(self, task: Task) -> Problem:
        """Return a task with what is hidden of it.

        Raises:
            UserError: the task is none of this environment's.
        """
        problem = next((problem for problem in self._offered(task.split) if problem.task_id == task.task_id), None)
        if problem is None or problem.task(task.split) != task:
            raise UserError(f"{task.task_id} is no task of {NAME} under its present options")
        return problem

    def open(self, task: Task, trial: int) -> OsSession:
        """Open a session in a sandbox of its own; all trials of a task are alike.

        Raises:
            UserError: the task is none of this environment's.
            EnvironmentBroken: the sandbox did not start.
        """
        problem = self.problem(task)
        session = OsSession(problem, Sandbox(self._rootfs), self._timeout_s)
        try:
            session.prepare()
        except BaseException:
            session.close()
            raise
        return session

    def _offered(self, split: Split) -> list[Problem]:
        problems = self._heldout if split is Split.HELDOUT else self._loop[split]
        return problems[: self._limits.get(split, len(problems))]

    @cached_property
    def _loop(self) -> Mapping[Split, list[Problem]]:
        return divided(read_problems(self._files, self._open_file))

    @cached_property
    def _heldout(self) -> list[Problem]:
        return read_problems(self._files, STD)


def _timeout(value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value <= 600:
        raise ConfigError(f"{NAME}: option timeout_s must be a number above 0 and up to 600, got {value!r}")
    return float(value)
