"""The nouns of the system as frozen, validated records that survive a round trip through JSON.

Nothing here acts. A change of a stored record's shape raises its `schema_version` and adds a fixture.
"""

from evolve.records.base import (
    Decision,
    ErrorKind,
    FailureClass,
    Json,
    Layer,
    LoopSplit,
    Record,
    Split,
    Strength,
    digest_of,
)
from evolve.records.episode import (
    Effect,
    Episode,
    Fault,
    FaultKind,
    Firing,
    Step,
    StopReason,
)
from evolve.records.evaluation import ArmResult, Evaluation
from evolve.records.play import (
    Call,
    Completion,
    ModelFingerprint,
    Observation,
    Opening,
    ProposedCall,
    Score,
    Task,
    Tool,
    Usage,
)
from evolve.records.verdict import (
    Candidate,
    FailureLabel,
    FrozenHarness,
    Look,
    Pattern,
    Proposal,
    StageResult,
    Verdict,
)

__all__ = [
    "ArmResult",
    "Call",
    "Candidate",
    "Completion",
    "Decision",
    "Effect",
    "Episode",
    "ErrorKind",
    "Evaluation",
    "FailureClass",
    "FailureLabel",
    "Fault",
    "FaultKind",
    "Firing",
    "FrozenHarness",
    "Json",
    "Layer",
    "Look",
    "LoopSplit",
    "ModelFingerprint",
    "Observation",
    "Opening",
    "Pattern",
    "Proposal",
    "ProposedCall",
    "Record",
    "Score",
    "Split",
    "StageResult",
    "Step",
    "StopReason",
    "Strength",
    "Task",
    "Tool",
    "Usage",
    "Verdict",
    "digest_of",
]
