"""What one run works with. Objects are made elsewhere (`assembly`) and handed in."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from evolve.canaries import Canaries
from evolve.config import Config
from evolve.harness.artifact import Harness, read_harness
from evolve.harness.runtime import HarnessRuntime
from evolve.harness.worker import WorkerPool
from evolve.loop.replay import Replayer
from evolve.progress import Progress, Said
from evolve.protocols import Environment, Proposer
from evolve.records import ModelFingerprint, Split, Task
from evolve.repository import Repository, harness_folder
from evolve.rollout import Rollout
from evolve.ruler import Ruler, require_unchanged
from evolve.workspace import Workspace

if TYPE_CHECKING:
    from evolve.store.ledger import Ledger

INCUMBENT = ""


@dataclass(frozen=True)
class Incumbent:
    """The best accepted harness of a run: its commit, its content, and the runtime that plays with it."""

    commit: str
    harness: Harness
    runtime: HarnessRuntime


@dataclass(frozen=True)
class RunContext:
    """The parts of one run. `ruler` is what it began with; `measure` reads it anew from what lies on the disk."""

    run_id: str
    started_at: datetime
    config: Config
    workspace: Workspace
    repository: Repository
    ledger: Ledger
    environment: Environment
    pool: WorkerPool
    canaries: Canaries
    ruler: Ruler
    measure: Callable[[], Ruler]
    rollout: Rollout
    proposer: Proposer
    replayer: Replayer
    progress: Progress
    stop: asyncio.Event

    @property
    def name(self) -> str:
        """Name of the environment."""
        return self.environment.card.name

    @property
    def model(self) -> ModelFingerprint:
        """The frozen source model."""
        return self.rollout.model.fingerprint

    def train(self) -> list[Task]:
        """The training tasks: the proposer may see their traces."""
        return list(self.environment.tasks(Split.TRAIN))

    def guard(self) -> list[Task]:
        """The guard tasks: scores only."""
        return list(self.environment.tasks(Split.GUARD))

    def candidate_id(self, number: int) -> str:
        """Name a candidate of this run."""
        return f"{self.run_id}-{number:02d}"

    def runtime_of(self, harness: Harness) -> HarnessRuntime:
        """Return what plays with a harness under this run's switches."""
        settings = self.config.harness
        return HarnessRuntime(harness, self.pool, cap=settings.cap, off=frozenset(settings.off))

    def incumbent_at(self, commit: str) -> Incumbent:
        """Read the harness of a commit."""
        harness = read_harness(self.repository.read_files(commit, harness_folder(self.name)))
        return Incumbent(commit, harness, self.runtime_of(harness))

    async def require_ruler(self) -> None:
        """Do nothing where the run still measures what it began with.

        Raises:
            RulerChanged: it does not; the message names what changed.
        """
        require_unchanged(self.run_id, self.ruler, await asyncio.to_thread(self.measure))

    def say(self, text: str) -> None:
        """Tell people something."""
        self.progress.report(Said(text))
