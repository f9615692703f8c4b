"""What a look at the held-out tasks measured."""

from __future__ import annotations

from pydantic import Field

from evolve.records.base import Record
from evolve.records.play import ModelFingerprint, Usage
from evolve.records.verdict import Look


class ArmResult(Record):
    """What one arm did on the held-out tasks. `ci95` is the Wilson interval of the rate (Wilson 1927)."""

    n: int = Field(description="scored episodes")
    successes: int
    rate: float
    ci95: tuple[float, float]
    errors: int = Field(description="episodes that infrastructure broke; not scored")
    usage: Usage


class Evaluation(Record):
    """The result of one look."""

    schema_version: int = 1
    environment: str
    name: str = Field(description="name of the frozen harness")
    look: Look
    model: ModelFingerprint
    is_recorded: bool = Field(description="True where completions came from a recording")
    base: ArmResult
    frozen: ArmResult
    gain: float = Field(description="mean difference in success per task, frozen minus base")
    interval: tuple[float, float] = Field(description="95% paired bootstrap interval of the gain")
    p: float = Field(description="one-sided sign-flip mid-p over tasks")
    wins: int
    losses: int
    families: dict[str, tuple[int, int, int]] = Field(description="family: tasks, base successes, frozen successes")
    heldout_commitment: str | None = Field(default=None, description="digest of the held-out split that was played")
    warnings: tuple[str, ...] = ()
