"""The loop, on one screen. Each step is on record before the next begins, so a resumed run takes up where it was."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from evolve.gate.budget import Policy
from evolve.loop.accept import seal_accepted
from evolve.loop.context import Incumbent, RunContext
from evolve.loop.control import control
from evolve.loop.examine import error_budget, examine
from evolve.loop.measures import came_true
from evolve.loop.observe import observe
from evolve.loop.propose import Waiting, propose
from evolve.loop.quarantine import quarantining, refuse_quarantined
from evolve.progress import Judged
from evolve.records import Candidate, Decision, Verdict
from evolve.repository import run_branch


class Ending(StrEnum):
    """Why the loop ended."""

    ITERATIONS = "all iterations done"
    NOTHING_TO_PROPOSE = "the proposer has nothing to propose"
    ALL_SOLVED = "every training task is solved"
    WAITING = "waiting for an edit by hand"


@dataclass(frozen=True)
class Outcome:
    """How a run ended, and the best harness that it has."""

    ending: Ending
    incumbent: Incumbent
    message: str = ""


async def run_loop(run: RunContext, base_commit: str) -> Outcome:
    """Evolve the harness of a base commit until nothing is left to do.

    Raises:
        ControlFailed: the incumbent differs from itself; `--resume` measures that anew.
        BudgetSpent, Interrupted, InfrastructureError: the run ends early; `--resume` goes on.
        CanaryFound: sealed content came out. The candidate is under quarantine, and its run is not gone on with.
    """
    refuse_quarantined(run)
    branch = run_branch(run.run_id)
    if run.repository.resolve(branch) is None:
        run.repository.update_ref(branch, base_commit, None)
    incumbent = run.incumbent_at(base_commit)
    for number in range(1, run.config.iterations + 1):
        candidate = _known_candidate(run, number)
        if candidate is None:
            with quarantining(run, incumbent):
                findings = await observe(run, incumbent, number)
            if not findings.failed:
                return Outcome(Ending.ALL_SOLVED, incumbent)
            proposed = await propose(run, incumbent, findings, number)
            if isinstance(proposed, Waiting):
                return Outcome(Ending.WAITING, incumbent, proposed.message)
            if proposed is None:
                return Outcome(Ending.NOTHING_TO_PROPOSE, incumbent)
            candidate = proposed
        verdict = await _judge(run, candidate, incumbent)
        if verdict.decision is Decision.ACCEPT:
            incumbent = _advance(run, candidate, verdict, incumbent)
    return Outcome(Ending.ITERATIONS, incumbent)


def _known_candidate(run: RunContext, number: int) -> Candidate | None:
    known = {entry.candidate.number: entry.candidate for entry in run.ledger.candidates(run.run_id)}
    return known.get(number)


async def _judge(run: RunContext, candidate: Candidate, incumbent: Incumbent) -> Verdict:
    verdict = run.ledger.verdict(candidate.candidate_id)
    if verdict is None:
        with quarantining(run, incumbent, candidate):
            await control(run, incumbent, candidate.number)
            run.ledger.mark_testing(candidate.candidate_id)
            verdict = await examine(run, candidate, incumbent)
        run.ledger.settle_predictions(candidate.candidate_id, came_true(verdict))
        run.ledger.save_verdict(verdict)
        run.progress.report(Judged(candidate.candidate_id, verdict))
        run.say(str(error_budget(run)))
    return verdict


def _advance(run: RunContext, candidate: Candidate, verdict: Verdict, incumbent: Incumbent) -> Incumbent:
    """Make an accepted candidate the incumbent and put it on the run's branch; done already is done."""
    if run.config.gate.policy is Policy.EXPLORE:
        return run.incumbent_at(candidate.commit)
    accepted = seal_accepted(run.repository, candidate, verdict, ruler=run.ruler.digest, date=run.started_at)
    branch = run_branch(run.run_id)
    if run.repository.find_candidate(candidate.candidate_id, within=branch) is None:
        run.repository.update_ref(branch, accepted, incumbent.commit)
    return run.incumbent_at(accepted)
