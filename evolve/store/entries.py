"""What the ledger answers with: frozen records, never table rows."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from pydantic import Field

from evolve.records import Candidate, Episode, Json, Look, Pattern, Record, Split, Usage, Verdict


class RunStatus(StrEnum):
    """How a run stands. A run that a kill ended is still `running`, and nobody plays it."""

    RUNNING = "running"
    DONE = "done"
    STOPPED = "stopped"
    FAILED = "failed"


class CandidateState(StrEnum):
    """How far the gate is with a candidate."""

    PROPOSED = "proposed"
    TESTING = "testing"
    ACCEPTED = "accepted"
    REJECTED = "rejected"
    CANNOT_TELL = "cannot_tell"


class Review(StrEnum):
    """What a person, or a policy, did with a candidate that the gate accepted.

    `quarantined` is the word for one that sealed content came out with, whatever the gate said; it is never taken.
    """

    NONE = "none"
    WAITING = "waiting"
    TAKEN = "taken"
    REFUSED = "refused"
    QUARANTINED = "quarantined"


class Purpose(StrEnum):
    """What an episode was rolled out for."""

    BASELINE = "baseline"
    NOISE = "noise"
    SCREEN = "screen"
    PAIRED_TEST = "paired_test"
    GUARDS = "guards"
    CONFIRMATION = "confirmation"
    EVALUATION = "evaluation"


class EpisodeUse(NamedTuple):
    """An episode to write down, where its trace begins, and who used it for what."""

    episode: Episode
    trace_path: str
    trace_offset: int
    arm: str  # the candidate's id, or "" for the incumbent
    purpose: Purpose


class RunEntry(Record):
    """One run."""

    run_id: str
    environment: str
    model: str = Field(description="digest of the model fingerprint")
    base_commit: str
    config: Json
    started_at: str = Field(description="UTC, ISO 8601")
    status: RunStatus
    reason: str = Field(default="", description="why it ended")
    finished_at: str | None = None


class EpisodeEntry(Record):
    """What the ledger knows of an episode without opening its trace."""

    episode_id: str
    environment: str
    split: Split
    family: str
    task_id: str
    trial: int
    model: str
    harness: str
    status: str
    stop: str
    success: bool
    score: float | None
    steps: int
    faults: int
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    cost_usd: float | None
    requests: int
    requests_asked: int
    wall_s: float
    isolation: str
    trace_path: str
    trace_offset: int
    recorded_at: str


class PatternEntry(Record):
    """A pattern as it stood in one iteration of a run."""

    run_id: str
    iteration: int
    pattern: Pattern


class CandidateEntry(Record):
    """A candidate, where it stands, and what the gate said."""

    candidate: Candidate
    state: CandidateState
    review: Review
    taken_commit: str | None = Field(default=None, description="the commit on the user's branch")
    quarantine: str = Field(default="", description="why it is under quarantine")
    verdict: Verdict | None = None


class Prediction(Record):
    """What a proposer said would happen to one task. `came_true` is None until it was measured."""

    candidate_id: str
    task_id: str
    kind: str = Field(description="'fixed' or 'at_risk'")
    came_true: bool | None = None


class SelfCheckEntry(Record):
    """An A/A control: the incumbent in both arms, before a candidate was tested."""

    run_id: str
    number: int = Field(description="of the candidate that it came before")
    attempt: int = Field(description="1 for the first; a failed control is repeated on fresh trials")
    is_passed: bool
    pairs: int = Field(description="valid pairs; 0 for a greedy model, which is not measured")
    p: float = Field(description="two-sided sign-flip mid-p")
    effect: float = Field(description="score points per task between the arms")
    pair_variance: float = Field(description="E(d^2) of a pair: the noise of the incumbent against itself")
    reasons: tuple[str, ...]


class RulerEntry(Record):
    """What a run measures with: a digest, and the manifest that it is of."""

    digest: str
    record: Json


class CommitmentEntry(Record):
    """The digest of a held-out split, made when the workspace first saw it, and not changed since."""

    environment: str
    options: Json = Field(description="of the environment: they say which tasks are listed")
    digest: str
    made_at: str = Field(description="UTC, ISO 8601")


class LookEntry(Record):
    """A look and its result; `closed_at` is None while it is open or where it was cut off."""

    look: Look
    closed_at: str | None = None
    result: Json | None = None


class Totals(Record):
    """What a run used. Episodes reused from earlier runs count as episodes, and cost nothing."""

    episodes: int
    requests: int
    requests_asked: int
    usage: Usage = Field(description="tokens and money of the episodes that this run recorded first")
    proposer_usage: Usage
