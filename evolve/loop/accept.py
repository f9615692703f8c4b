"""Turns a verdict into a commit: on the run's branch at once, on the user's branch when it is accepted there."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import TYPE_CHECKING

from evolve.environments.installed import make_environment
from evolve.errors import RulerChanged, StoreError, UserError
from evolve.loop.trial_rows import require_trials
from evolve.records import Candidate, Decision, Verdict
from evolve.repository import Repository, Trailers, accept_candidate, harness_folder, require_landable, run_branch
from evolve.ruler import Ruler, measure, require_unchanged
from evolve.store import CandidateEntry, Review

if TYPE_CHECKING:
    from evolve.store.ledger import Ledger


def trailers_of(candidate: Candidate, verdict: Verdict, ruler: str) -> Trailers:
    """Return what a commit says of the evidence it rests on, and of what it was measured with."""
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
        ruler=ruler,
    )


def commit_message(candidate: Candidate) -> str:
    """Return the message of an accepted candidate's commit, without trailers."""
    proposal = candidate.proposal
    subject = f"{candidate.environment}: {proposal.hypothesis}"
    short = subject if len(subject) <= 72 else f"{subject[:71].rsplit(' ', 1)[0]}…"
    origin = f"Layer {proposal.layer.value}, pattern {proposal.pattern_id}, by {candidate.proposer}."
    return f"{short}\n\n{proposal.hypothesis}\n\n{origin}"


def seal_accepted(repository: Repository, candidate: Candidate, verdict: Verdict, *, ruler: str, date: datetime) -> str:
    """Return the commit of an accepted candidate on its parent, with trailers; the same arguments give the same one.

    Args:
        ruler: digest of what it was measured with.
    """
    folder = harness_folder(candidate.environment)
    return repository.commit_files(
        candidate.parent_commit,
        folder,
        repository.read_files(candidate.commit, folder),
        message=commit_message(candidate),
        date=date,
        trailers=trailers_of(candidate, verdict, ruler),
    )


def take(repository: Repository, ledger: Ledger, candidate_id: str, *, date: datetime) -> str:
    """Commit an accepted candidate onto the user's branch and return the commit; taken already is done.

    Raises:
        UserError: the gate did not accept it, or it is under quarantine.
        RulerChanged: what it was measured with is not what measures now.
        StoreError: its evidence is not what was written down when it was accepted.
        RepositoryError: the user's harness is not the candidate's parent or has uncommitted changes.
    """
    entry = ledger.candidate(candidate_id)
    trailers = _checked_trailers(repository, ledger, entry)
    message = commit_message(entry.candidate)
    commit = accept_candidate(repository, entry.candidate, message=message, trailers=trailers, date=date)
    ledger.take(candidate_id, commit)
    return commit


def require_takeable(repository: Repository, ledger: Ledger, entries: Iterable[CandidateEntry]) -> None:
    """Do nothing where `take` would commit these candidates one after the other. Nothing is changed.

    Raises:
        EvolveError: as `take` does.
    """
    onto: dict[str, str] = {}
    for entry in entries:
        candidate = entry.candidate
        _checked_trailers(repository, ledger, entry)
        landed = require_landable(repository, candidate, onto=onto.get(candidate.environment, "HEAD"))
        if landed is None:
            onto[candidate.environment] = candidate.commit


def take_all(
    repository: Repository, ledger: Ledger, run_id: str, *, date: datetime, say: Callable[[str], None]
) -> None:
    """Commit the accepted candidates of a run that wait for a review, in order, and say each.

    Raises:
        EvolveError: as `take` does; those before it are committed.
    """
    for found in ledger.candidates(run_id):
        if found.review is Review.WAITING:
            name = found.candidate.candidate_id
            commit = take(repository, ledger, name, date=date)
            say(f"candidate {name} is commit {commit[:12]} on your branch")


def _checked_trailers(repository: Repository, ledger: Ledger, entry: CandidateEntry) -> Trailers:
    """Return the trailers of an accepted candidate whose evidence is still what it was accepted on."""
    verdict = _accepted_verdict(ledger, entry)
    ruler = _checked_ruler(ledger, entry.candidate)
    _check_evidence(repository, ledger, entry, verdict, ruler)
    require_trials(ledger, entry.candidate, verdict)
    return trailers_of(entry.candidate, verdict, ruler)


def _accepted_verdict(ledger: Ledger, entry: CandidateEntry) -> Verdict:
    name = entry.candidate.candidate_id
    if entry.review is Review.QUARANTINED:
        raise UserError(f"candidate {name} is under quarantine and is never accepted: {entry.quarantine}")
    if entry.verdict is None or entry.verdict.decision is not Decision.ACCEPT:
        word = "nothing yet" if entry.verdict is None else entry.verdict.decision.value
        raise UserError(f"candidate {name} cannot be accepted: the gate said {word} (`evolve candidates show {name}`)")
    if ledger.run(entry.candidate.run_id).config["gate"]["policy"] == "explore":
        raise UserError(f"candidate {name} comes from an `explore` run, whose candidates are never committed")
    return entry.verdict


def _checked_ruler(ledger: Ledger, candidate: Candidate) -> str:
    """Return the digest of what a candidate was measured with, after measuring it anew."""
    run, stored = ledger.run(candidate.run_id), ledger.ruler(candidate.run_id)
    if stored is None:
        raise RulerChanged(
            f"run {run.run_id} has no ruler on record (an older evolve made it, or the ledger was altered), so what "
            f"candidate {candidate.candidate_id} was measured with cannot be checked; test it in a new run"
        )
    then = Ruler.model_validate(stored.record)
    options = run.config.get("environments", {}).get(run.environment, {})
    sections = {"harness": run.config.get("harness", {}), "gate": run.config["gate"]}
    now = measure(make_environment(run.environment, options), model=then.model, **sections)
    require_unchanged(run.run_id, then, now)
    if then.model.digest != run.model:
        raise StoreError(f"run {run.run_id} and its ruler name different models; restore the ledger from a copy")
    return stored.digest


def _check_evidence(
    repository: Repository, ledger: Ledger, entry: CandidateEntry, verdict: Verdict, ruler: str
) -> None:
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
        and repository.trailers(sealed).ruler == ruler
        and len(trees) == 1
    )
    if not is_same:
        raise StoreError(
            f"the evidence on candidate {name} is not the one that commit {sealed[:12]} was made with "
            f"({repository.trailers(sealed).evidence}); restore ledger and repository from a copy"
        )
