"""The environment: card, task lists, the seal on the held-out side, and how a session is opened."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path

from evolve.environments.data import BenchmarkData
from evolve.environments.dbbench.benchmark import BENCHMARK, DEV, OPEN, STANDARD
from evolve.environments.dbbench.engines import Engine
from evolve.environments.dbbench.entries import NAME, Entry, divided, heldout_entries, mixed, open_entries
from evolve.environments.dbbench.mysql import MysqlEngine
from evolve.environments.dbbench.scoring import PASS_MARK, VERSION
from evolve.environments.dbbench.session import DbSession
from evolve.environments.dbbench.sqlite import SqliteEngine
from evolve.environments.options import LIMITS, limits_of, refuse_unknown
from evolve.environments.seal import require_look, require_loop_split
from evolve.environments.source import source_digest
from evolve.errors import ConfigError, UserError
from evolve.protocols import EnvironmentCard
from evolve.records import Look, LoopSplit, Split, Task, digest_of

STEP_LIMIT = 15
EMBEDDED = "sqlite"
OPTIONS = ("data", "engine", *LIMITS)


class DbBench:
    """DBBench on one engine. `limits` cut the task lists to a prefix."""

    def __init__(self, files: BenchmarkData, engine: Engine, limits: Mapping[Split, int]) -> None:
        self._files = files
        self._engine = engine
        self._limits = limits

    @classmethod
    def from_options(cls, options: Mapping[str, object]) -> DbBench:
        """Make the environment.

        Raises:
            ConfigError: an unknown option, a value of the wrong kind, or an engine that cannot be used here.
        """
        refuse_unknown(NAME, options, OPTIONS)
        limits = limits_of(NAME, options)
        files = BenchmarkData(BENCHMARK, options.get("data"))
        return cls(files, _engine(options.get("engine", EMBEDDED)), limits)

    @cached_property
    def card(self) -> EnvironmentCard:
        """Name, limits and a digest over source, open tasks and engine, whatever the limits."""
        files = [hashlib.sha256(self._files.read(path)).hexdigest() for path in (DEV, OPEN)]
        return EnvironmentCard(
            name=NAME,
            version=f"{VERSION} on {self._engine.name}",
            step_limit=STEP_LIMIT,
            pass_mark=PASS_MARK,
            description="One table and a question about it, or a change of it, by SQL (AgentBench DBBench)",
            digest=digest_of([source_digest(Path(__file__).parent), files, self._engine.name]),
            is_blocking=True,
        )

    def tasks(self, split: LoopSplit) -> Sequence[Task]:
        """List the training or guard tasks.

        Raises:
            SealError: anything else was asked for.
        """
        require_loop_split(NAME, split)
        return [entry.task(split) for entry in self._offered(split)]

    def heldout_tasks(self, look: Look) -> Sequence[Task]:
        """List the held-out tasks against a recorded look.

        Raises:
            SealError: the look is not for this environment.
            ConfigError: standard.jsonl is not here.
        """
        require_look(NAME, look)
        return [entry.task(Split.HELDOUT) for entry in self._offered(Split.HELDOUT)]

    def heldout_digest(self) -> str | None:
        """Return the SHA-256 of the held-out tasks on offer; None where standard.jsonl is not here."""
        if not self._files.has(STANDARD):
            return None
        return digest_of([[repr(entry), self._engine.name] for entry in self._offered(Split.HELDOUT)])

    def open(self, task: Task, trial: int) -> DbSession:
        """Open a session on a database of its own; all trials of a task are alike.

        Raises:
            UserError: the task is none of this environment's.
            EnvironmentBroken: the engine does not answer.
        """
        entry = next((entry for entry in self._offered(task.split) if entry.task_id == task.task_id), None)
        if entry is None or entry.task(task.split) != task:
            raise UserError(f"{task.task_id} is no task of {NAME} under its present options")
        return DbSession(entry, self._engine.open(entry.table), self._engine.name)

    def _offered(self, split: Split) -> list[Entry]:
        entries = self._heldout if split is Split.HELDOUT else self._loop[split]
        return entries[: self._limits.get(split, len(entries))]

    @cached_property
    def _loop(self) -> dict[Split, list[Entry]]:
        parts = divided(open_entries(self._files))
        return {split: self._held(entries) for split, entries in parts.items()}

    @cached_property
    def _heldout(self) -> list[Entry]:
        return self._held(mixed(heldout_entries(self._files)))

    def _held(self, entries: Iterable[Entry]) -> list[Entry]:
        """Leave out the entries whose names the engine does not accept."""
        return [entry for entry in entries if self._engine.can_hold(entry.table)]


def _engine(choice: object) -> Engine:
    if choice == EMBEDDED:
        return SqliteEngine()
    if isinstance(choice, str) and choice.startswith(("mysql://", "mariadb://")):
        return MysqlEngine(choice)
    raise ConfigError(f"{NAME}: option engine must be {EMBEDDED!r} or a URL mysql://..., got {choice!r}")
