"""The interfaces between the parts. Nothing here does anything; implementations import only from below."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from evolve.records import (
    Call,
    Candidate,
    Completion,
    Json,
    Look,
    LoopSplit,
    ModelFingerprint,
    Observation,
    Opening,
    Proposal,
    Score,
    Task,
    Tool,
    Usage,
)


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """What a model is asked: chat messages and function schemas as plain JSON, in OpenAI's form.

    `stream` names the random stream (task and trial) of a sampled model; it is empty for a greedy one, so
    that equal requests share one completion. `is_first` marks the first request that this episode really asks.
    """

    messages: list[Json]
    tools: list[Json]
    stream: str = ""
    is_first: bool = field(default=False, compare=False)


class Model(Protocol):
    """A frozen language model behind an endpoint."""

    @property
    def fingerprint(self) -> ModelFingerprint:
        """What identifies this model, its sampling and its protocol."""

    async def complete(self, request: ModelRequest) -> Completion:
        """Answer one request.

        Raises:
            ProviderError: the endpoint failed after its retries (infrastructure, never the model's fault).
        """

    async def close(self) -> None:
        """Release connections or the served model."""


@dataclass(frozen=True, slots=True)
class EnvironmentCard:
    """What an environment says of itself. `digest` covers its code, its tasks and its scorer."""

    name: str
    version: str
    step_limit: int
    pass_mark: float
    description: str
    digest: str
    is_blocking: bool = False
    canary: str = ""


class Session(Protocol):
    """One task being worked on. Deterministic given task, trial and calls."""

    @property
    def opening(self) -> Opening:
        """The system prompt and the user's first message."""

    @property
    def tools(self) -> Sequence[Tool]:
        """The tools on offer; constant for the session."""

    def step(self, call: Call) -> Observation:
        """Run one call. Whatever an agent can do wrong comes back as an observation with an error kind.

        Raises:
            EnvironmentBroken: the environment itself broke.
        """

    def say(self, text: str) -> Observation:
        """Take a plain message: to a user simulator where there is one, else an observation saying so."""

    def probe(self, call: Call) -> Observation:
        """Run a read-only call without a step being counted or the state being changed."""

    def score(self) -> Score:
        """Score the present state. Pure: may be asked again."""

    def close(self) -> None:
        """Release what the session holds."""


class Environment(Protocol):
    """A set of tasks under fixed rules with its own scorer."""

    @property
    def card(self) -> EnvironmentCard:
        """Name, limits, digest."""

    def tasks(self, split: LoopSplit) -> Sequence[Task]:
        """List the training or guard tasks in a fixed order. There is no way to ask this for held-out tasks."""

    def heldout_tasks(self, look: Look) -> Sequence[Task]:
        """List the held-out tasks against a recorded look.

        Raises:
            SealError: the look is not for this environment.
        """

    def heldout_digest(self) -> str | None:
        """Return the commitment to the held-out split (SHA-256), without its contents; None: its data is not here."""

    def open(self, task: Task, trial: int) -> Session:
        """Open a session on a task."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """What a proposer gets: a workspace holding only the harness folder, and an evidence folder beside it.

    The workspace is a copy that the host made and will read back file by file; `evidence` holds brief.md,
    rules.py (the rule API), patterns.json, patterns/*.md (excerpts of training traces) and history.json
    (past proposals with verdicts).
    """

    environment: str
    number: int
    workspace: Path
    evidence: Path
    timeout_s: float
    history: tuple[tuple[Candidate, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Proposed:
    """What a proposer gives back beside the edited files. `proposal` None: it has nothing to propose.

    `sandbox` names what shut its agent in, "none" where nothing did; empty where no program of its own ran.
    """

    proposal: Proposal | None
    usage: Usage = Usage()
    transcript: Path | None = None
    is_waiting: bool = False
    sandbox: str = ""


class Proposer(Protocol):
    """What writes a candidate: it edits files under `assignment.workspace` and says why."""

    @property
    def kind(self) -> str:
        """mechanic, openai, command:NAME or handoff."""

    async def propose(self, assignment: Assignment) -> Proposed:
        """Edit the harness files in the workspace and describe the one hypothesis behind the edit.

        Raises:
            ProposerError: it crashed, timed out, or wrote no valid proposal.
        """
