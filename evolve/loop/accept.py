"""Turns a verdict into a commit: on the run's branch at once, on the user's branch when it is accepted there."""

from __future__ import annotations

from datetime import datetime

from evolve.errors import StoreError, UserError
from evolve.records import Candidate, Decision, Verdict
from evolve.repository import Repository, Trailers, accept_candidate, harness_folder, run_branch
from evolve.store import CandidateEntry, Ledger


def trailers_of(candidate: Candidate, verdict: Verdict) -> Trailers:
    """Return what a commit says of the evidence it rests on."""
    interval = None if verdict.interval is None else "{:+.3f} to {:+.3f}".format(*verdict.interval)
    cost = verdict.usage.cost_usd
    tokens = verdict.usage.prompt_tokens + verdict.usage.completion_tokens
    return Trailers(
        run=candidate.run_id,
        candidate=candidate.candidate_id,
        verdict=verdict.decision.value,
        effect=None if verdict.effect is None else f"{verdict.effect:+.3f}",
        interval=interval,
        cost=f"{tokens} tokens" if cost is None else f"{tokens} tokens, {cost:.4f} USD",
        evidence=verdict.evidence_digest,
    )


def commit_message(candidate: Candidate) -> str:
    """Return the message of an accepted candidate's commit, without trailers."""
    proposal = candidate.proposal
    subject = f"{candidate.environment}: {proposal.hypothesis}"
    short = subject if len(subject) <= 72 else f"{subject[:71].rsplit(' ', 1)[0]}…"
    origin = f"Layer {proposal.layer.value}, pattern {proposal.pattern_id}, by {candidate.proposer}."
    return f"{short}\n\n{proposal.hypothesis}\n\n{origin}"


def seal_accepted(repository: Repository, candidate: Candidate, verdict: Verdict, *, date: datetime) -> str:
    """Return the commit of an accepted candidate on its parent, with trailers; the same arguments give the same one."""
    folder = harness_folder(candidate.environment)
    return repository.commit_files(
        candidate.parent_commit,
        folder,
        repository.read_files(candidate.commit, folder),
        message=commit_message(candidate),
        date=date,
        trailers=trailers_of(candidate, verdict),
    )


def take(repository: Repository, ledger: Ledger, candidate_id: str, *, date: datetime) -> str:
    """Commit an accepted candidate onto the user's branch and return the commit; taken already is done.

    Raises:
        UserError: the gate did not accept it.
        StoreError: its evidence is not what was written down when it was accepted.
        RepositoryError: the user's harness is not the candidate's parent or has uncommitted changes.
    """
    entry = ledger.candidate(candidate_id)
    verdict = _accepted_verdict(ledger, entry)
    _check_evidence(repository, ledger, entry, verdict)
    commit = accept_candidate(
        repository,
        entry.candidate,
        message=commit_message(entry.candidate),
        trailers=trailers_of(entry.candidate, verdict),
        date=date,
    )
    ledger.take(candidate_id, commit)
    return commit


def _accepted_verdict(ledger: Ledger, entry: CandidateEntry) -> Verdict:
    name = entry.candidate.candidate_id
    if entry.verdict is None or entry.verdict.decision is not Decision.ACCEPT:
        word = "nothing yet" if entry.verdict is None else entry.verdict.decision.value
        raise UserError(f"candidate {name} cannot be accepted: the gate said {word} (`evolve candidates show {name}`)")
    if ledger.run(entry.candidate.run_id).config["gate"]["policy"] == "explore":
        raise UserError(f"candidate {name} comes from an `explore` run, whose candidates are never committed")
    return entry.verdict


def _check_evidence(repository: Repository, ledger: Ledger, entry: CandidateEntry, verdict: Verdict) -> None:
    """Compare what is on record three times: rows of stages, the verdict, and the commit on the run's branch."""
    candidate = entry.candidate
    name, branch = candidate.candidate_id, run_branch(candidate.run_id)
    sealed = repository.find_candidate(name, within=branch) if repository.resolve(branch) else None
    if sealed is None:
        short = branch.removeprefix("refs/heads/")
        raise StoreError(
            f"candidate {name} has no commit on branch {short}, so its evidence cannot be checked; restore the branch, "
            f"or let `evolve run --resume {candidate.run_id}` finish"
        )
    trees = {repository.harness_tree(commit, candidate.environment) for commit in (sealed, candidate.commit)}
    is_same = (
        tuple(ledger.stages(name)) == verdict.stages
        and repository.trailers(sealed).evidence == verdict.evidence_digest
        and len(trees) == 1
    )
    if not is_same:
        raise StoreError(
            f"the evidence on candidate {name} is not the one that commit {sealed[:12]} was made with "
            f"({repository.trailers(sealed).evidence}); restore ledger and repository from a copy"
        )
