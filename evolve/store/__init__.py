"""The ledger: the only package with database tables. It indexes what happened; episodes and files lie elsewhere."""

from evolve.store.entries import (
    CandidateEntry,
    CandidateState,
    CommitmentEntry,
    EpisodeEntry,
    EpisodeUse,
    LookEntry,
    PatternEntry,
    Prediction,
    Purpose,
    Review,
    RulerEntry,
    RunEntry,
    RunStatus,
    SelfCheckEntry,
    Totals,
)
from evolve.store.ledger import Ledger

__all__ = [
    "CandidateEntry",
    "CandidateState",
    "CommitmentEntry",
    "EpisodeEntry",
    "EpisodeUse",
    "Ledger",
    "LookEntry",
    "PatternEntry",
    "Prediction",
    "Purpose",
    "Review",
    "RulerEntry",
    "RunEntry",
    "RunStatus",
    "SelfCheckEntry",
    "Totals",
]
