"""The nouns of the system as frozen, validated records that survive a round trip through JSON.

Nothing here acts. A change of a stored record's shape raises its `schema_version` and adds a fixture.
"""

from __future__ import annotations

import hashlib
from enum import StrEnum
from typing import Any, Literal

import orjson
from pydantic import BaseModel, ConfigDict, Field

Json = dict[str, Any]


def digest_of(value: Any) -> str:
    """Return the SHA-256 (hex) of a JSON value in canonical form: sorted keys, no spaces, UTF-8."""
    return hashlib.sha256(orjson.dumps(value, option=orjson.OPT_SORT_KEYS)).hexdigest()


class Record(BaseModel):
    """Base of all records: immutable, unknown fields refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Split(StrEnum):
    """Which tasks: `train` (proposer sees traces), `guard` (scores only), `heldout` (sealed)."""

    TRAIN = "train"
    GUARD = "guard"
    HELDOUT = "heldout"


LoopSplit = Literal[Split.TRAIN, Split.GUARD]


class Layer(StrEnum):
    """The four layers of a harness, in lifecycle order."""

    CONTRACT = "contract"
    SKILL = "skill"
    ACTION = "action"
    TRAJECTORY = "trajectory"


class Strength(StrEnum):
    """How far a unit may go, weakest first."""

    NOTE = "note"
    WARN = "warn"
    BLOCK = "block"
    REWRITE = "rewrite"
    FORCE = "force"

    @property
    def rank(self) -> int:
        """Position on the ladder, 0 for `note`."""
        return list(Strength).index(self)


class ErrorKind(StrEnum):
    """Why an environment did not do what a call asked. These are observations, never exceptions."""

    MALFORMED_CALL = "malformed_call"
    UNKNOWN_TOOL = "unknown_tool"
    INVALID_ARGS = "invalid_args"
    REJECTED = "rejected"
    NO_EFFECT = "no_effect"
    TIMEOUT = "timeout"


class FailureClass(StrEnum):
    """Why an episode failed, in the order in which the classes are tried (first match wins)."""

    ACTION = "action"
    CONTRACT = "contract"
    TRAJECTORY = "trajectory"
    REASONING = "reasoning"


class Decision(StrEnum):
    """What a gate says of a candidate."""

    ACCEPT = "accept"
    REJECT = "reject"
    CANNOT_TELL = "cannot_tell"


class Task(Record):
    """One problem. Its checker and gold stay inside the environment."""

    task_id: str
    environment: str
    split: Split
    family: str
    text: str = Field(description="what the agent is told; skills are retrieved by it")


class Tool(Record):
    """A tool offered to the model. `parameters` is a JSON schema; `read_only` tools may be probed."""

    name: str
    description: str
    parameters: Json
    read_only: bool = False

    def function_schema(self) -> Json:
        """Return the OpenAI function schema (read_only is not part of it)."""
        function = {"name": self.name, "description": self.description, "parameters": self.parameters}
        return {"type": "function", "function": function}


class Call(Record):
    """A call that an environment can be asked to run."""

    tool: str
    arguments: Json


class ProposedCall(Record):
    """A call as the model wrote it. `arguments` is None where `arguments_text` is no JSON object."""

    call_id: str
    tool: str
    arguments_text: str
    arguments: Json | None


class Observation(Record):
    """What an environment answers: its own words byte for byte, and apart from them what kind of error."""

    text: str
    error_kind: ErrorKind | None = None
    done: bool = False
    admissible: tuple[str, ...] | None = None


class Opening(Record):
    """How an episode begins: the system prompt, the user's first message, the admissible actions."""

    system: str
    user: str
    admissible: tuple[str, ...] | None = None


class Score(Record):
    """The environment's own number in [0, 1]; `success` is value >= pass mark; `version` names the scorer."""

    value: float = Field(ge=0.0, le=1.0)
    success: bool
    parts: dict[str, float] = {}
    version: str


class Usage(Record):
    """Tokens and money. `cost_usd` is None where no price is known."""

    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float | None = None

    def __add__(self, other: Usage) -> Usage:
        costs = [c for c in (self.cost_usd, other.cost_usd) if c is not None]
        return Usage(
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            cost_usd=sum(costs) if costs else None,
        )


class ModelFingerprint(Record):
    """What must be equal for two completions to be comparable; part of every record and cache key."""

    model_id: str
    endpoint: str = Field(description="kind of endpoint: openai, local, scripted")
    protocol: Literal["tools", "text"]
    sampling: Json
    weights_sha256: str | None = None

    @property
    def digest(self) -> str:
        """SHA-256 of all fields."""
        return digest_of(self.model_dump(mode="json"))

    @property
    def is_greedy(self) -> bool:
        """True where temperature is 0: trials beyond the first are then the same episode."""
        return float(self.sampling.get("temperature", 1.0)) == 0.0


class Completion(Record):
    """One answer of a model. `malformed` holds the endpoint's words where it could not parse a call."""

    text: str
    calls: tuple[ProposedCall, ...] = ()
    usage: Usage = Usage()
    finish_reason: str = "stop"
    malformed: str | None = None


Effect = Literal["note", "block", "rewrite", "probe", "force", "let_through"]
FaultKind = Literal["raised", "timeout", "nonsense", "over_strength", "crashed"]


class Firing(Record):
    """One time a unit changed something. `step` is -1 before the episode; a probe is a firing too."""

    unit: str
    layer: Layer
    strength: Strength
    step: int
    effect: Effect
    before: str = ""
    after: str = ""


class Fault(Record):
    """A rule that misbehaved and was switched off for the episode."""

    unit: str
    step: int
    kind: FaultKind
    message: str


class Step(Record):
    """One step: what the model wrote, what was run, what came back, and what the harness did to both."""

    index: int
    turn: int = Field(description="index of the model's reply; a reply with several calls gives several steps")
    text: str = ""
    proposed: ProposedCall | None = None
    executed: Call | None = None
    observation: Observation
    is_blocked: bool = False
    is_forced: bool = False
    note: str | None = Field(default=None, description="what the trajectory layer added for the model to see")
    firings: tuple[Firing, ...] = ()
    request: str = Field(default="", description="digest of the request that the reply answered")


StopReason = Literal["finished", "step_limit", "context_full", "error"]


class Episode(Record):
    """One attempt at one task by one model with one harness, one trial number."""

    schema_version: Literal[1] = 1
    episode_id: str
    task_id: str
    environment: str
    family: str
    split: Split
    trial: int
    model: str = Field(description="digest of the model fingerprint")
    harness: str = Field(description="digest of the active harness; 'off' without one")
    status: Literal["done", "error"]
    stop: StopReason
    opening: Opening
    opening_firings: tuple[Firing, ...] = ()
    steps: tuple[Step, ...] = ()
    score: Score | None = None
    faults: tuple[Fault, ...] = ()
    usage: Usage = Usage()
    usage_asked: Usage = Field(default=Usage(), description="of this, what this episode really asked for")
    requests: int = Field(default=0, description="model requests in all")
    requests_asked: int = Field(default=0, description="of these, first asked by this episode; the rest was reused")
    wall_s: float = 0.0
    isolation: str = Field(default="none", description="tier of the rule worker; 'none' where no rule ran")
    error: str | None = Field(default=None, description="for status error: the boundary crossed and its message")

    @property
    def firings(self) -> tuple[Firing, ...]:
        """All firings of the episode in order."""
        return self.opening_firings + tuple(f for step in self.steps for f in step.firings)

    @property
    def is_success(self) -> bool:
        """True where the episode was scored at the pass mark or above."""
        return self.score is not None and self.score.success


class FailureLabel(Record):
    """Why one episode failed: its class, the mechanical signature, the step that shows it."""

    episode_id: str
    task_id: str
    failure_class: FailureClass
    signature: str = Field(description="kind of signal and its key, e.g. 'unknown_value:status'")
    step: int
    detail: Json = {}
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
    detail: Json = {}
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
    numbers: Json = {}


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
    manifest: Json = {}


class Look(Record):
    """One use of the held-out split. Only the ledger makes one, and it writes it down first."""

    look_id: str
    environment: str
    frozen_name: str
    harness: str
    model: str
    opened_at: str = Field(description="UTC, ISO 8601")
    number: int = Field(description="1 for the first look at this split with this harness")
