"""Freezes the harness that the user has committed, with a manifest of what it stands for."""

from __future__ import annotations

from evolve import __version__
from evolve.assembly import make_environment
from evolve.cli.place import Desk, Place, writing
from evolve.errors import UserError
from evolve.freeze import freeze_harness
from evolve.harness.digest import harness_digest
from evolve.protocols import Environment
from evolve.records import FrozenHarness, Json
from evolve.repository import harness_folder, open_repository
from evolve.store import Ledger, Review


def freeze_head(place: Place, environment: str, name: str) -> FrozenHarness:
    """Freeze the harness of an environment at HEAD; the same again is done already.

    Raises:
        UserError: the harness has uncommitted changes, or the name seals something else.
    """
    made = make_environment(environment, place.config.environments.get(environment, {}))
    with writing(place) as desk:
        _require_clean(desk, environment)
        commit = desk.repository.head_commit()
        digest = harness_digest(desk.repository.read_files(commit, harness_folder(environment)))
        return freeze_harness(
            desk.repository,
            desk.ledger,
            environment=environment,
            name=name,
            commit=commit,
            manifest=_manifest(desk.ledger, made, digest),
            date=place.now(),
        )


def freeze_preview(place: Place, environment: str, name: str) -> Json:
    """Return what `freeze_head` would seal."""
    make_environment(environment, place.config.environments.get(environment, {}))
    with open_repository(place.workspace.root) as repository:
        commit, folder = repository.head_commit(), harness_folder(environment)
        return {
            "environment": environment,
            "name": name,
            "tag": f"evolve/{environment}/{name}",
            "commit": commit,
            "harness": harness_digest(repository.read_files(commit, folder)),
            "uncommitted": repository.changed_paths(folder),
        }


def _require_clean(desk: Desk, environment: str) -> None:
    folder = harness_folder(environment)
    if changed := desk.repository.changed_paths(folder):
        raise UserError(f"{changed[0]} is not committed; commit or undo your changes in {folder} before a freeze")


def _manifest(ledger: Ledger, made: Environment, digest: str) -> Json:
    """Return what the seal covers beside the files. Nothing of it depends on when it is made."""
    return {
        "evolve": __version__,
        "environment": {
            "version": made.card.version,
            "digest": made.card.digest,
            "pass_mark": made.card.pass_mark,
            "step_limit": made.card.step_limit,
        },
        "heldout_commitment": made.heldout_digest(),
        "origin": _origin(ledger, made.card.name, digest),
    }


def _origin(ledger: Ledger, environment: str, digest: str) -> Json | None:
    """Return the accepted candidate that made this harness, with its run and its model; None where there is none."""
    for entry in ledger.candidates():
        candidate = entry.candidate
        if entry.review is Review.TAKEN and (candidate.environment, candidate.harness) == (environment, digest):
            return {
                "candidate": candidate.candidate_id,
                "run": candidate.run_id,
                "model": ledger.run(candidate.run_id).model,
            }
    return None
