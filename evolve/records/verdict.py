"""From failures to what is proposed, decided, frozen and looked at."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from evolve.records.base import Decision, FailureClass, Json, Layer, Record, digest_of
from evolve.records.play import Usage


class FailureLabel(Record):
    """Why one episode failed: its class, the mechanical signature, the step that shows it."""

    episode_id: str
    task_id: str
    failure_class: FailureClass
    signature: str = Field(description="kind of signal and its key, e.g. 'unknown_value:status'")
    step: int
    detail: Json = Field(default={})
    judged_by: Literal["signal", "judge"] = "signal"


class Pattern(Record):
    """Failures that share one signature."""

    pattern_id: str
    environment: str
    failure_class: FailureClass
    signature: str
    title: str
    tasks: tuple[str, ...] = Field(description="distinct failed training tasks, sorted: the support")
    counter_support: int = Field(description="successful training episodes that match too")
    detail: Json = Field(default={})
    excerpt: str = Field(description="a few lines of one episode around the evidence step")
    episodes: tuple[str, ...] = ()


class Proposal(Record):
    """What a proposer says of its patch, before anybody measured it."""

    schema_version: Literal[1] = 1
    hypothesis: str = Field(min_length=10, max_length=600)
    layer: Layer
    pattern_id: str
    predicts_fixed: tuple[str, ...] = ()
    at_risk: tuple[str, ...] = ()


class Candidate(Record):
    """A parent commit plus a patch, under test."""

    candidate_id: str
    run_id: str
    number: int = Field(description="1 for the first candidate of the run; the error budget is spent by it")
    environment: str
    parent_commit: str
    commit: str
    parent_harness: str
    harness: str
    proposer: str
    proposal: Proposal
    files: tuple[str, ...] = Field(description="paths that differ from the parent, relative to the harness folder")
    refused: tuple[str, ...] = Field(default=(), description="'path: reason' of what was left out of the edit")
    usage: Usage = Usage()
    sandbox: str = Field(
        default="", description="what shut the agent in; 'none': UNPROTECTED; empty: no program of a proposer's ran"
    )


class StageResult(Record):
    """One stage of the gate. `numbers` is JSON for people and reports; `reasons` are whole sentences."""

    stage: Literal["scope", "lint", "load", "replay", "screen", "paired_test", "guards", "confirmation"]
    outcome: Literal["pass", "accept", "reject", "cannot_tell"]
    reasons: tuple[str, ...] = ()
    numbers: Json = Field(default={})


class Verdict(Record):
    """The gate's word on a candidate. `effect` is the fresh estimate, in score points per task."""

    schema_version: Literal[1] = 1
    candidate_id: str
    decision: Decision
    stages: tuple[StageResult, ...]
    effect: float | None = None
    interval: tuple[float, float] | None = None
    alpha: float | None = Field(default=None, description="share of the run's error budget this test could spend")
    requests_asked: int = 0
    requests_reused: int = 0
    usage: Usage = Usage()

    @property
    def evidence_digest(self) -> str:
        """SHA-256 over the whole verdict; stands in the commit trailer and is checked by `accept`."""
        return digest_of(self.model_dump(mode="json"))


class FrozenHarness(Record):
    """A harness version sealed by commit and digest."""

    schema_version: Literal[1] = 1
    environment: str
    name: str
    tag: str
    commit: str
    harness: str
    manifest: Json = Field(default={})


class Look(Record):
    """One use of the held-out split. Only the ledger makes one, and it writes it down first."""

    look_id: str
    environment: str
    frozen_name: str
    harness: str
    model: str
    opened_at: str = Field(description="UTC, ISO 8601")
    number: int = Field(description="1 for the first look at this split with this harness")
