"""An episode: its steps, and what the harness did in each."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from evolve.records.base import Layer, Record, Split, Strength
from evolve.records.play import Call, Observation, Opening, ProposedCall, Score, Usage

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
