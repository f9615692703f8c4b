"""Has one candidate made: export and evidence out, edited files back in, commit, ledger."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from evolve.errors import CanaryFound
from evolve.evidence import Attempt, Constraints, Evidence, write_evidence
from evolve.harness.check import PROPOSAL_FILE
from evolve.harness.digest import harness_digest
from evolve.loop.context import Incumbent, RunContext
from evolve.loop.observe import Findings
from evolve.loop.quarantine import canary_in, refuse_transcripts
from evolve.predictions import PredictionScore
from evolve.protocols import Assignment, Proposed
from evolve.records import Candidate, Verdict
from evolve.repository import Collected, Trailers, candidate_ref, collect, harness_folder
from evolve.workspace import remove_folder


@dataclass(frozen=True)
class Waiting:
    """The proposer handed the workspace over and waits for an edit."""

    message: str


async def propose(run: RunContext, incumbent: Incumbent, findings: Findings, number: int) -> Candidate | Waiting | None:
    """Return the next candidate, written down; None where the proposer has nothing to propose.

    Raises:
        ProposerError: the proposer failed; the run can be resumed and asks it again.
        CanaryFound: sealed content came out; a candidate that was made with it is under quarantine.
    """
    folder = run.workspace.candidate_folder(run.candidate_id(number))
    assignment = _assignment(run, incumbent, findings, folder, number)
    texts = {task.task_id: task.text for task in run.train()}
    run.replayer.show([e for e in findings.episodes if e.status == "done"], texts, findings.tools)
    began = time.time()
    try:
        proposed = await run.proposer.propose(assignment)
        collected = Collected({}, []) if proposed.proposal is None else _collect(assignment.workspace)
    except BaseException as error:  # a stop and a time limit too: nobody looks at what was said until then any more
        refuse_transcripts(run, since=began)
        run.canaries.refuse(str(error), "what a proposer failed with")
        raise
    if proposed.is_waiting:
        return Waiting(
            f"Edit the harness in {assignment.workspace} (read {assignment.evidence / 'brief.md'} first), "
            f"write {PROPOSAL_FILE} there, then `evolve run --resume`."
        )
    if proposed.proposal is None:
        refuse_transcripts(run, since=began)
        return None
    if collected.files == dict(incumbent.harness.files):
        refuse_transcripts(run, since=began)
        run.say(f"iteration {number}: the proposer changed nothing")
        return None
    found = canary_in(run, proposed.proposal, collected, since=began)
    candidate = _write_down(run, incumbent, proposed, collected, number, found)
    if found is not None:
        raise CanaryFound(f"{found}; candidate {candidate.candidate_id} is under quarantine") from found
    run.say(f"candidate {candidate.candidate_id}: {candidate.proposal.hypothesis}")
    return candidate


def _assignment(run: RunContext, incumbent: Incumbent, findings: Findings, folder: Path, number: int) -> Assignment:
    """Export the harness and write the evidence; a workspace that is handed over is left as it is."""
    assignment = Assignment(
        environment=run.name,
        number=number,
        workspace=folder / "workspace",
        evidence=folder / "evidence",
        timeout_s=run.config.proposer.timeout_s,
    )
    if run.proposer.kind == "handoff" and assignment.workspace.is_dir():
        return assignment
    remove_folder(folder)
    run.repository.export(incumbent.commit, harness_folder(run.name), assignment.workspace)
    write_evidence(
        assignment.evidence,
        _evidence(run, incumbent, findings),
        withheld=[task.task_id for task in run.guard()],
        canaries=run.canaries,
        templates=run.workspace.prompts,
    )
    return assignment


def _evidence(run: RunContext, incumbent: Incumbent, findings: Findings) -> Evidence:
    return Evidence(
        card=run.environment.card,
        tools=findings.tools,
        harness_files=incumbent.harness.files,
        patterns=findings.patterns,
        labels=findings.labels,
        episodes=[episode for episode in findings.episodes if episode.status == "done"],
        history=_history(run),
        constraints=Constraints(
            strength_cap=run.config.harness.cap,
            block_cap=incumbent.harness.settings.limits.block_cap,
            policy=run.config.gate.policy,
        ),
        model=run.model,
    )


def _history(run: RunContext) -> list[Attempt]:
    """Return what was tried in this run, with its verdicts and how its predictions came out."""
    return [_attempt(entry.candidate, entry.verdict) for entry in run.ledger.candidates(run.run_id) if entry.verdict]


def _attempt(candidate: Candidate, verdict: Verdict) -> Attempt:
    scored = next((stage.numbers["predictions"] for stage in verdict.stages if "predictions" in stage.numbers), None)
    return Attempt(
        candidate_id=candidate.candidate_id,
        proposal=candidate.proposal,
        decision=verdict.decision,
        reasons=verdict.stages[-1].reasons,
        predictions=None if scored is None else PredictionScore.model_validate(scored),
    )


def _collect(workspace: Path) -> Collected:
    collected = collect(workspace)
    return Collected(
        {path: content for path, content in collected.files.items() if path != PROPOSAL_FILE}, collected.refused
    )


def _write_down(
    run: RunContext,
    incumbent: Incumbent,
    proposed: Proposed,
    collected: Collected,
    number: int,
    found: CanaryFound | None,
) -> Candidate:
    """Commit the edit under a ref of its own and enter it in the ledger; done already is done.

    A candidate that sealed content came out with is kept too, and is under quarantine from its first moment.
    """
    assert proposed.proposal is not None
    name = run.candidate_id(number)
    commit = run.repository.commit_files(
        incumbent.commit,
        harness_folder(run.name),
        collected.files,
        message=f"{run.name}: candidate {name}\n\n{proposed.proposal.hypothesis}",
        date=run.started_at,
        trailers=Trailers(run=run.run_id, candidate=name),
    )
    candidate = Candidate(
        candidate_id=name,
        run_id=run.run_id,
        number=number,
        environment=run.name,
        parent_commit=incumbent.commit,
        commit=commit,
        parent_harness=incumbent.harness.digest,
        harness=harness_digest(collected.files),
        proposer=run.proposer.kind,
        proposal=proposed.proposal,
        files=_changed(incumbent.harness.files, collected.files),
        refused=tuple(f"{path}: {reason}" for path, reason in collected.refused),
        usage=proposed.usage,
        sandbox=proposed.sandbox,
    )
    ref = candidate_ref(name)
    run.repository.update_ref(ref, commit, run.repository.resolve(ref))
    with run.ledger.together():
        run.ledger.add_candidate(candidate)
        if found is not None:
            run.ledger.quarantine(name, str(found))
    return candidate


def _changed(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> tuple[str, ...]:
    return tuple(sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path)))
