"""Seals a harness version: a tag in git, a row in the ledger, one digest in both."""

from __future__ import annotations

from datetime import datetime

from pydantic import ValidationError

from evolve.errors import RepositoryError, SealError
from evolve.harness.digest import harness_digest
from evolve.records import FrozenHarness, Json
from evolve.repository import Repository, freeze, harness_folder, read_tag
from evolve.store import Ledger


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
    files = repository.read_files(sealed, harness_folder(environment))
    if not files:
        raise RepositoryError(f"commit {sealed[:12]} has no harness for {environment}; nothing to freeze")
    frozen = FrozenHarness(
        environment=environment,
        name=name,
        tag=f"evolve/{environment}/{name}",
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
        RepositoryError: there is no such tag.
        SealError: tag, commit and files do not agree.
    """
    tag = f"evolve/{environment}/{name}"
    commit, manifest = read_tag(repository, tag)
    try:
        frozen = FrozenHarness.model_validate(manifest)
    except ValidationError as error:
        raise SealError(f"the manifest of tag {tag} is not one of this evolve: {error.error_count()} faults") from error
    files = repository.read_files(commit, harness_folder(environment))
    if (frozen.tag, frozen.commit, frozen.harness) != (tag, commit, harness_digest(files)):
        raise SealError(f"the harness under tag {tag} is not the one that was frozen; freeze it under a new name")
    return frozen
