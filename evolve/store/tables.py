"""The tables. Rows are not records: they are not validated and never leave this package.

What is asked for has a column; the rest of a record is JSON beside it. A change of a table raises SCHEMA_VERSION.
"""

from sqlalchemy import JSON, BigInteger, UniqueConstraint
from sqlalchemy.orm import registry
from sqlmodel import Field, SQLModel

from evolve.records import Json

SCHEMA_VERSION = 3
"""2: candidates may be quarantined, runs have rulers, held-out splits have commitments, and a canary lies in it.
3: runs remember the options that they were given."""


class Row(SQLModel, registry=registry()):
    """Base of all rows, with a catalogue of its own: other SQLModel tables in the process are not ours."""


class InfoRow(Row, table=True):
    """Facts about the ledger itself: its schema version, its canary and the end of the chain of looks."""

    __tablename__ = "ledger_info"
    key: str = Field(primary_key=True)
    value: str


class RunRow(Row, table=True):
    """One run."""

    __tablename__ = "runs"
    run_id: str = Field(primary_key=True)
    environment: str = Field(index=True)
    model: str
    base_commit: str
    config: Json = Field(sa_type=JSON)
    started_at: str
    status: str
    reason: str = ""
    finished_at: str | None = None


class EpisodeRow(Row, table=True):
    """One episode; its trace is at a place in a file."""

    __tablename__ = "episodes"
    episode_id: str = Field(primary_key=True)
    environment: str = Field(index=True)
    split: str
    family: str
    task_id: str = Field(index=True)
    trial: int
    model: str
    harness: str = Field(index=True)
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
    trace_offset: int = Field(sa_type=BigInteger)
    recorded_at: str


class RunEpisodeRow(Row, table=True):
    """An episode's use in a run: one episode may serve the incumbent and several candidates."""

    __tablename__ = "run_episodes"
    run_id: str = Field(primary_key=True, foreign_key="runs.run_id")
    arm: str = Field(primary_key=True)
    episode_id: str = Field(primary_key=True, foreign_key="episodes.episode_id")
    purpose: str = Field(primary_key=True)
    is_first: bool  # this use recorded the episode; its cost is counted here and nowhere else


class LookEpisodeRow(Row, table=True):
    """A held-out episode's use in a look. Runs have no way to one."""

    __tablename__ = "look_episodes"
    look_id: str = Field(primary_key=True)
    episode_id: str = Field(primary_key=True, foreign_key="episodes.episode_id")


class PatternRow(Row, table=True):
    """A pattern as it stood in one iteration."""

    __tablename__ = "patterns"
    run_id: str = Field(primary_key=True, foreign_key="runs.run_id")
    iteration: int = Field(primary_key=True)
    pattern_id: str = Field(primary_key=True)
    failure_class: str
    signature: str
    support: int
    counter_support: int
    record: Json = Field(sa_type=JSON)


class CandidateRow(Row, table=True):
    """A candidate and where it stands."""

    __tablename__ = "candidates"
    __table_args__ = (UniqueConstraint("run_id", "number"),)
    candidate_id: str = Field(primary_key=True)
    run_id: str = Field(foreign_key="runs.run_id")
    number: int
    environment: str
    proposer: str
    parent_commit: str
    commit: str
    harness: str
    state: str
    review: str
    taken_commit: str | None = None
    record: Json = Field(sa_type=JSON)


class QuarantineRow(Row, table=True):
    """Why a candidate was put under quarantine."""

    __tablename__ = "quarantines"
    candidate_id: str = Field(primary_key=True, foreign_key="candidates.candidate_id")
    reason: str
    at: str


class StageRow(Row, table=True):
    """The result of one gate stage."""

    __tablename__ = "stage_results"
    candidate_id: str = Field(primary_key=True, foreign_key="candidates.candidate_id")
    stage: str = Field(primary_key=True)
    position: int
    outcome: str
    record: Json = Field(sa_type=JSON)


class VerdictRow(Row, table=True):
    """The gate's word, with its digest."""

    __tablename__ = "verdicts"
    candidate_id: str = Field(primary_key=True, foreign_key="candidates.candidate_id")
    decision: str
    effect: float | None
    evidence_digest: str
    record: Json = Field(sa_type=JSON)


class OptionsRow(Row, table=True):
    """What a run was told on its command line so far."""

    __tablename__ = "run_options"
    run_id: str = Field(primary_key=True, foreign_key="runs.run_id")
    options: Json = Field(sa_type=JSON)


class RulerRow(Row, table=True):
    """What a run measures with, as it was at its start."""

    __tablename__ = "rulers"
    run_id: str = Field(primary_key=True, foreign_key="runs.run_id")
    digest: str
    record: Json = Field(sa_type=JSON)


class PredictionRow(Row, table=True):
    """What a proposer predicted for one task, and whether it came true."""

    __tablename__ = "predictions"
    candidate_id: str = Field(primary_key=True, foreign_key="candidates.candidate_id")
    task_id: str = Field(primary_key=True)
    kind: str = Field(primary_key=True)
    came_true: bool | None = None


class SelfCheckRow(Row, table=True):
    """One A/A control: the incumbent against itself before a candidate was tested."""

    __tablename__ = "self_checks"
    run_id: str = Field(primary_key=True, foreign_key="runs.run_id")
    number: int = Field(primary_key=True)
    attempt: int = Field(primary_key=True)
    is_passed: bool
    record: Json = Field(sa_type=JSON)


class GuardUseRow(Row, table=True):
    """One time that guard scores decided something: each such time wears the guard tasks out a little."""

    __tablename__ = "guard_uses"
    candidate_id: str = Field(primary_key=True, foreign_key="candidates.candidate_id")
    stage: str = Field(primary_key=True)
    environment: str = Field(index=True)
    used_at: str


class FreezeRow(Row, table=True):
    """A frozen harness."""

    __tablename__ = "freezes"
    environment: str = Field(primary_key=True)
    name: str = Field(primary_key=True)
    harness: str
    record: Json = Field(sa_type=JSON)


class CommitmentRow(Row, table=True):
    """The digest of a held-out split as this ledger first saw it under some options of its environment."""

    __tablename__ = "commitments"
    environment: str = Field(primary_key=True)
    options_digest: str = Field(primary_key=True)
    options: Json = Field(sa_type=JSON)
    digest: str
    made_at: str


class BaitRow(Row, table=True):
    """Bait for whoever searches a ledger for answers: there are none in it, the one row holds the canary."""

    __tablename__ = "heldout_answers"
    task: str = Field(primary_key=True)
    answer: str


class LookRow(Row, table=True):
    """One entry in the chain of looks: a look being opened, or closed with its result."""

    __tablename__ = "looks"
    __table_args__ = (UniqueConstraint("look_id", "kind"),)
    position: int = Field(primary_key=True)
    kind: str
    look_id: str
    environment: str
    frozen_name: str
    harness: str
    model: str
    number: int
    at: str
    result: Json | None = Field(default=None, sa_type=JSON)
    previous: str
    digest: str
