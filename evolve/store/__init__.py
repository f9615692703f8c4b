"""The ledger: the only package with database tables. It indexes what happened; episodes and files lie elsewhere.

What the ledger answers with is offered here; `evolve.store.ledger` has the ledger itself, and loads the database.
"""

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

__all__ = [
    "CandidateEntry",
    "CandidateState",
    "CommitmentEntry",
    "EpisodeEntry",
    "EpisodeUse",
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
