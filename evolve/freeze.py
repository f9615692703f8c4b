"""Seals a harness version: a tag in git, a row in the ledger, one digest in both, and what the version stands for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from pydantic import ValidationError

from evolve import __version__
from evolve.errors import RepositoryError, SealError, UserError
from evolve.harness.artifact import read_harness
from evolve.harness.digest import harness_digest
from evolve.protocols import Environment
from evolve.records import FrozenHarness, Json
from evolve.repository import Repository, freeze, harness_folder, read_tag, tags
from evolve.seal import commit_heldout, require_heldout
from evolve.store import Review

if TYPE_CHECKING:
    from evolve.store.ledger import Ledger

VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def freeze_head(
    repository: Repository, ledger: Ledger, environment: Environment, options: Json, *, name: str, date: datetime
) -> FrozenHarness:
    """Freeze the harness of an environment that the user has committed; the same again is done already.

    Args:
        options: of the environment, as it was made with.

    Raises:
        UserError: the harness has uncommitted changes, is not there or does not read, or the name is none or is taken.
        SealError: the held-out tasks are not those of the commitment.
    """
    commit, digest = _head_to_freeze(repository, environment.card.name, name)
    commitment = commit_heldout(ledger, environment, options)
    return freeze_harness(
        repository,
        ledger,
        environment=environment.card.name,
        name=name,
        commit=commit,
        manifest={
            "evolve": __version__,
            "environment": _described(environment),
            "heldout_commitment": commitment.digest if commitment else None,
            "origin": _origin(ledger, environment.card.name, digest),
        },
        date=date,
    )


def freeze_preview(
    repository: Repository, ledger: Ledger | None, environment: Environment, options: Json, *, name: str
) -> Json:
    """Return what `freeze_head` would seal.

    Args:
        ledger: None where none was made yet.

    Raises:
        UserError, SealError: as `freeze_head`.
    """
    commit, digest = _head_to_freeze(repository, environment.card.name, name)
    if ledger is not None:
        require_heldout(ledger, environment, options)
    tag = tag_of(environment.card.name, name)
    return {"environment": environment.card.name, "name": name, "tag": tag, "commit": commit, "harness": digest}


def tag_of(environment: str, name: str) -> str:
    """Return the tag of a version."""
    return f"evolve/{environment}/{name}"


def _head_to_freeze(repository: Repository, environment: str, name: str) -> tuple[str, str]:
    """Return the commit that would be sealed and the digest of its harness.

    Raises:
        UserError: something stands in the way; the message says how to mend it.
    """
    if not VERSION.fullmatch(name) or ".." in name or name.endswith((".", ".lock")):
        words = "letters and digits, with single '.', '_' and '-' between them"
        raise UserError(f"{name!r} is no name for a version: {words}")
    folder, commit, tag = harness_folder(environment), repository.head_commit(), tag_of(environment, name)
    if changed := repository.changed_paths(folder):
        raise UserError(f"{changed[0]} is not committed; commit or undo your changes in {folder} before a freeze")
    files = _harness_at(repository, commit, environment)
    read_harness(files)
    if tag in tags(repository, environment) and read_tag(repository, tag).commit != commit:
        raise RepositoryError(f"tag {tag} exists already and seals another commit; choose another name")
    return commit, harness_digest(files)


def _harness_at(repository: Repository, commit: str, environment: str) -> dict[str, bytes]:
    files = repository.read_files(commit, harness_folder(environment))
    if not files:
        raise RepositoryError(f"commit {commit[:12]} has no harness for {environment}; nothing to freeze")
    return files


def freeze_harness(
    repository: Repository, ledger: Ledger, *, environment: str, name: str, commit: str, manifest: Json, date: datetime
) -> FrozenHarness:
    """Freeze the harness of an environment at a commit; the same again is done already.

    The tag comes first: a freeze that was cut off is completed by running it again.

    Args:
        manifest: what else the seal covers: model, sampling, environment, scorer, the run it came from.

    Raises:
        RepositoryError: the commit has no such harness, or the tag seals something else.
        SealError: the ledger has the name for something else.
    """
    sealed = repository.commit(commit)
    files = _harness_at(repository, sealed, environment)
    frozen = FrozenHarness(
        environment=environment,
        name=name,
        tag=tag_of(environment, name),
        commit=sealed,
        harness=harness_digest(files),
        manifest=manifest,
    )
    freeze(repository, sealed, frozen.tag, frozen.model_dump(mode="json"), date=date)
    ledger.save_freeze(frozen)
    return frozen


def frozen_harness(repository: Repository, *, environment: str, name: str) -> FrozenHarness:
    """Return a frozen harness after checking that its files are those that were sealed.

    Raises:
        RepositoryError: nothing is frozen under that name; the message has the names there are.
        SealError: tag, commit and files do not agree.
    """
    tag, known = tag_of(environment, name), tags(repository, environment)
    if tag not in known:
        raise RepositoryError(_nothing_frozen(environment, name, known))
    commit, manifest = read_tag(repository, tag)
    try:
        frozen = FrozenHarness.model_validate(manifest)
    except ValidationError as error:
        raise SealError(f"the manifest of tag {tag} is not one of this evolve: {error.error_count()} faults") from error
    files = repository.read_files(commit, harness_folder(environment))
    if (frozen.tag, frozen.commit, frozen.harness) != (tag, commit, harness_digest(files)):
        raise SealError(f"the harness under tag {tag} is not the one that was frozen; freeze it under a new name")
    return frozen


def _nothing_frozen(environment: str, name: str, known: Sequence[str]) -> str:
    """Say which names there are instead, or how to make the first."""
    names = ", ".join(tag.rpartition("/")[2] for tag in known)
    there = (
        f"; frozen are {names}" if names else f", nor under another; `evolve freeze {environment} --name V` seals one"
    )
    return f"nothing of {environment} is frozen under the name {name!r}{there}"


def _described(environment: Environment) -> Json:
    """Return what the seal covers of an environment. Nothing of it depends on when it is made."""
    card = environment.card
    return {
        "version": card.version,
        "digest": card.digest,
        "pass_mark": card.pass_mark,
        "step_limit": card.step_limit,
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
