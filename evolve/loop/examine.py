"""Puts one candidate through the stages of the gate, cheapest first. Each may reject; only the last may accept."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from evolve.gate.budget import ErrorBudget
from evolve.harness.artifact import read_folder
from evolve.loop import checks, trials
from evolve.loop.context import Incumbent, RunContext
from evolve.loop.exam import Exam
from evolve.loop.numbering import first_trial
from evolve.loop.on_record import budget_after
from evolve.loop.trial_rows import with_trials
from evolve.progress import Staged
from evolve.records import Candidate, Decision, StageResult, Usage, Verdict
from evolve.repository import add_worktree, harness_folder, remove_worktree

Stage = Callable[[Exam], Awaitable[StageResult]]
STAGES: tuple[Stage, ...] = (
    checks.scope,
    checks.lint,
    checks.load,
    checks.replay,
    trials.screen,
    trials.paired_test,
    trials.guards,
    trials.confirmation,
)
DECISIONS = {"accept": Decision.ACCEPT, "reject": Decision.REJECT, "cannot_tell": Decision.CANNOT_TELL}


async def examine(run: RunContext, candidate: Candidate, incumbent: Incumbent) -> Verdict:
    """Return the verdict on a candidate. What was rolled out before a kill is on record and is not played again.

    Raises:
        RulerChanged: the run measures something else by now; the stage that was under way is not written down.
    """
    place = run.workspace.worktree(candidate.candidate_id)
    add_worktree(run.repository, candidate.commit, place)
    try:
        files = read_folder(place / harness_folder(run.name))
        exam = Exam(run, candidate, incumbent, files, error_budget(run).next_alpha, first_trial(run, candidate.number))
        results = await _run_stages(exam)
    finally:
        remove_worktree(run.repository, place)
    return _verdict(exam, results)


async def _run_stages(exam: Exam) -> list[StageResult]:
    results: list[StageResult] = []
    await exam.run.require_ruler()
    for stage in STAGES:
        found = with_trials(exam, await stage(exam))
        await exam.run.require_ruler()
        result = exam.run.ledger.save_stage(exam.candidate.candidate_id, found)
        exam.run.progress.report(Staged(exam.candidate.candidate_id, result))
        results.append(result)
        if result.outcome != "pass":
            break
    return results


def error_budget(run: RunContext) -> ErrorBudget:
    """Return the run's error budget as it is now."""
    return budget_after(run.config.gate.policy, run.ledger.candidates(run.run_id))


def _verdict(exam: Exam, results: list[StageResult]) -> Verdict:
    last = results[-1]
    return Verdict(
        candidate_id=exam.candidate.candidate_id,
        decision=DECISIONS[last.outcome],
        stages=tuple(results),
        effect=exam.effect,
        interval=exam.interval,
        alpha=exam.alpha_spent or None,
        requests_asked=sum(e.requests_asked for e in exam.candidate_episodes),
        requests_reused=sum(e.requests - e.requests_asked for e in exam.candidate_episodes),
        usage=Usage.total(e.usage for e in exam.candidate_episodes),
    )
