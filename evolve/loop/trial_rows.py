"""Binds a verdict to the trials that it rests on, so that a score which is edited afterwards is seen at accept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evolve.errors import StoreError
from evolve.loop.context import INCUMBENT
from evolve.loop.exam import Exam
from evolve.records import Candidate, Json, StageResult, Verdict, digest_of
from evolve.store import EpisodeEntry

if TYPE_CHECKING:
    from evolve.store.ledger import Ledger

KEY = "trial_rows"


def with_trials(exam: Exam, result: StageResult) -> StageResult:
    """Return a stage's result with the digest of all trials that were played up to it."""
    episodes = {episode.episode_id: episode for arm in (exam.old, exam.new) for episode in arm.values()}
    if not episodes:
        return result
    scored = [
        (name, episode.score.value, episode.is_success)
        for name, episode in episodes.items()
        if episode.score is not None
    ]
    bound: Json = {
        "episodes": len(scored),
        "digest": digest_of(sorted(scored)),
        "void": sorted(name for name, episode in episodes.items() if episode.score is None),
        "incumbent": exam.incumbent.runtime.digest,
    }
    return result.model_copy(update={"numbers": {**result.numbers, KEY: bound}})


def require_trials(ledger: Ledger, candidate: Candidate, verdict: Verdict) -> None:
    """Compare the trials of a verdict with their rows in the ledger.

    Raises:
        StoreError: one was altered, added or removed since.
    """
    bound = [stage.numbers[KEY] for stage in verdict.stages if KEY in stage.numbers]
    if bound and digest_of(sorted(_rows(ledger, candidate, bound[-1]))) != bound[-1]["digest"]:
        raise StoreError(
            f"the trials of candidate {candidate.candidate_id} are not those that its verdict rests on: a score was "
            "altered, added or removed; restore the ledger from a copy"
        )


def _rows(ledger: Ledger, candidate: Candidate, bound: Json) -> set[tuple[str, float, bool]]:
    """Return what the ledger says of the candidate's trials and of the incumbent's on the same tasks and trials."""
    mine = ledger.episodes(candidate.run_id, arm=candidate.candidate_id)
    played = {_place(row) for row in mine}
    theirs = ledger.episodes(candidate.run_id, arm=INCUMBENT)
    rows = [*mine, *(row for row in theirs if row.harness == bound["incumbent"] and _place(row) in played)]
    void = set(bound["void"])
    return {
        (row.episode_id, row.score, row.success) for row in rows if row.score is not None and row.episode_id not in void
    }


def _place(row: EpisodeEntry) -> tuple[str, int]:
    return row.task_id, row.trial
