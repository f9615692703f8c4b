"""What evidence is written from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evolve.predictions import PredictionScore
from evolve.protocols import EnvironmentCard
from evolve.records import (
    Decision,
    Episode,
    FailureLabel,
    Layer,
    ModelFingerprint,
    Pattern,
    Proposal,
    Strength,
    Tool,
)


@dataclass(frozen=True, slots=True)
class Attempt:
    """A past candidate as the next proposer sees it. `reasons` are the gate's own sentences."""

    candidate_id: str
    proposal: Proposal
    decision: Decision
    reasons: tuple[str, ...] = ()
    predictions: PredictionScore | None = None


@dataclass(frozen=True, slots=True)
class Constraints:
    """What the run fixes and a proposer cannot change.

    Args:
        strength_cap: the strongest outcome that a rule may declare.
        block_cap: blocks per episode and unit; then the call is let through.
        policy: name of the error budget that the gate spends.
        layers: the layers that may be edited in this run.
    """

    strength_cap: Strength = Strength.REWRITE
    block_cap: int = 3
    policy: str = "standard"
    layers: tuple[Layer, ...] = tuple(Layer)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """All that a proposer may know.

    Args:
        card: the environment.
        tools: the tools on offer to the agent under study.
        harness_files: the parent harness by path in its folder.
        patterns: recurring failures, most promising first.
        labels: of the failed training episodes.
        episodes: training episodes of the incumbent, failed and successful.
        history: past candidates of this environment, oldest first.
        constraints: what the run fixes.
        model: the frozen model; None where it is not known.
    """

    card: EnvironmentCard
    tools: Sequence[Tool]
    harness_files: Mapping[str, bytes]
    patterns: Sequence[Pattern]
    labels: Sequence[FailureLabel]
    episodes: Sequence[Episode]
    history: Sequence[Attempt]
    constraints: Constraints
    model: ModelFingerprint | None = None
