"""The report as a frozen record. It holds training data and aggregates only: no guard or held-out task is named."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from evolve.gate.budget import Policy
from evolve.predictions import PredictionScore
from evolve.records import (
    Decision,
    Evaluation,
    FailureClass,
    FrozenHarness,
    Json,
    Layer,
    Look,
    ModelFingerprint,
    Record,
    StageResult,
    Strength,
    Usage,
)
from evolve.store import CandidateState, CommitmentEntry, Review, RunStatus, SelfCheckEntry


class RunFacts(Record):
    """Which run it was and how it ended."""

    run_id: str
    environment: str
    status: RunStatus
    is_interrupted: bool = Field(default=False, description="it was killed: on record it goes on, and nobody plays it")
    reason: str
    started_at: str = Field(description="UTC, ISO 8601")
    finished_at: str | None
    wall_s: float | None = Field(description="seconds from start to end; None while the run is open")
    base_commit: str
    proposer: str
    policy: Policy
    config: Json = Field(description="the part of the configuration that decides what a run does")

    @property
    def standing(self) -> str:
        """How it stands, in a word."""
        return "interrupted" if self.is_interrupted else self.status.value


class ModelFacts(Record):
    """The frozen source model, as far as the workspace knows it."""

    digest: str
    model_id: str = Field(description="empty where only the digest is known")
    kind: str
    is_recorded: bool = Field(description="True where completions came from a recording and nobody was asked")
    fingerprint: ModelFingerprint | None


class IsolationFacts(Record):
    """How well rule code was shut in."""

    tiers: tuple[str, ...] = Field(description="tiers seen in the run's episodes, sorted; empty where no rule ran")
    is_unprotected: bool = Field(description="True where rule code ran with resource limits alone")
    proposers: tuple[str, ...] = Field(
        default=(), description="what shut coding agents in, sorted; 'none': UNPROTECTED; empty where none ran"
    )


class RunTotals(Record):
    """What the run used."""

    episodes: int
    errors: int = Field(description="of these, broken by infrastructure and never scored")
    requests: int
    requests_asked: int
    requests_reused: int
    usage: Usage = Field(description="tokens and money of the episodes that this run recorded first")
    proposer_usage: Usage
    episode_wall_s: float = Field(description="seconds of all episodes, one after the other")


class Baseline(Record):
    """The incumbent on the training tasks, one trial each: what the proposer was shown."""

    tasks: int = Field(description="scored training tasks")
    solved: int
    errors: int
    rate: float
    ci95: tuple[float, float] = Field(description="95% Wilson interval of the rate")


class PatternLine(Record):
    """A pattern in short."""

    pattern_id: str
    title: str
    failure_class: FailureClass
    support: int = Field(description="distinct failed training tasks")
    counter_support: int = Field(description="successful training episodes that match too")
    excerpt: str


class TaskLine(Record):
    """One training task in the paired test: mean scores of both arms."""

    task_id: str
    incumbent: float
    candidate: float
    pairs: int

    @property
    def change(self) -> float:
        """Candidate minus incumbent."""
        return self.candidate - self.incumbent


class Divergence(Record):
    """How far the candidate's episodes left what had been asked before."""

    episodes: int
    episodes_diverged: int
    requests: int
    requests_asked: int
    asked_share: float = Field(description="of what a full re-run would ask")
    tokens: int = Field(default=0, description="of all requests, reused ones included")
    tokens_asked: int = 0

    @property
    def tokens_reused(self) -> int:
        """Tokens of what had been asked before and was not asked again."""
        return self.tokens - self.tokens_asked


class CandidateReport(Record):
    """A candidate, its patch and the evidence on it."""

    candidate_id: str
    number: int
    proposer: str
    hypothesis: str
    layer: Layer
    pattern_id: str
    files: tuple[str, ...]
    diff: str = Field(description="unified diff of the harness folder; empty where git has lost the commit")
    state: CandidateState
    review: Review
    decision: Decision | None = Field(description="None while the gate is not done")
    reasons: tuple[str, ...] = Field(description="of the last stage")
    effect: float | None = Field(description="score points per task, 1.0 = from all failed to all solved")
    interval: tuple[float, float] | None
    alpha: float | None = Field(description="share of the error budget that its paired test could spend")
    stages: tuple[StageResult, ...]
    divergence: Divergence | None
    predictions: PredictionScore | None
    tasks: tuple[TaskLine, ...]
    requests_asked: int
    requests_reused: int
    usage: Usage
    evidence_digest: str | None
    taken_commit: str | None


class IterationReport(Record):
    """One pass of the loop."""

    number: int
    baseline: Baseline
    failure_classes: dict[FailureClass, int] = Field(description="failed training episodes by class; all classes")
    patterns: tuple[PatternLine, ...] = Field(description="the most supported ones")
    pattern_count: int
    candidate: CandidateReport | None


class UnitLine(Record):
    """How often a unit fired on training tasks, and what became of those episodes."""

    unit: str
    layer: Layer
    strength: Strength = Field(description="the strongest that it fired with")
    firings: int
    episodes: int = Field(description="training episodes in which it fired")
    successes: int = Field(description="successful ones among them")
    helped: int = Field(description="of the episodes, those whose task the incumbent fails in the same trial")
    hurt: int = Field(description="of the episodes, those that fail where the incumbent succeeds in the same trial")
    faults: int = Field(description="episodes in which it misbehaved and was switched off")


class BudgetFacts(Record):
    """The false-accept rate of the run and what is left of it; None under `explore`, which has none."""

    policy: Policy
    total: float | None
    left: float | None
    next_alpha: float
    sentence: str


class LookReport(Record):
    """A look at the held-out tasks; `evaluation` is None while it is open or was cut off."""

    look: Look
    closed_at: str | None
    evaluation: Evaluation | None


class Report(Record):
    """All of it."""

    schema_version: Literal[1] = 1
    run: RunFacts
    model: ModelFacts
    isolation: IsolationFacts
    totals: RunTotals
    iterations: tuple[IterationReport, ...]
    units: tuple[UnitLine, ...]
    budget: BudgetFacts
    self_checks: tuple[SelfCheckEntry, ...] = Field(default=(), description="A/A controls, in order")
    guard_uses: int = Field(description="times that guard scores decided something here, in all runs")
    ruler: str | None = Field(default=None, description="digest of what the run measured with")
    commitments: tuple[CommitmentEntry, ...] = Field(default=(), description="to the held-out split, oldest first")
    freezes: tuple[FrozenHarness, ...]
    looks: tuple[LookReport, ...]

    @property
    def candidates(self) -> tuple[CandidateReport, ...]:
        """The candidates in the order of the iterations."""
        return tuple(each.candidate for each in self.iterations if each.candidate is not None)

    def count(self, decision: Decision) -> int:
        """Return how many candidates got a decision."""
        return sum(candidate.decision is decision for candidate in self.candidates)
