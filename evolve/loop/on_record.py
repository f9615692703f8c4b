"""What records of candidates amount to: the error budget that is left, and the requests they took. Plays nothing."""

from __future__ import annotations

from collections.abc import Iterable

from evolve.gate.budget import ErrorBudget, Spent, budget_of
from evolve.records import Decision, Json, StageResult
from evolve.store import CandidateEntry


def budget_after(policy: str, candidates: Iterable[CandidateEntry]) -> ErrorBudget:
    """Return the budget as the paired tests of these candidates have left it; it is on record, so a resume keeps it."""
    verdicts = (entry.verdict for entry in candidates)
    spent = [Spent(v.alpha, v.decision is Decision.ACCEPT) for v in verdicts if v is not None and v.alpha is not None]
    return budget_of(policy, spent)


def whole_divergence(stages: Iterable[StageResult]) -> Json | None:
    """Return the counts of the last stage that played: they are those of all stages together."""
    counted = [stage.numbers for stage in stages if "requests_asked" in stage.numbers]
    names = ("episodes", "episodes_diverged", "requests", "requests_asked", "asked_share", "tokens", "tokens_asked")
    return {name: counted[-1].get(name) for name in names} if counted else None
