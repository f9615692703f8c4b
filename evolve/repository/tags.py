"""Frozen harness versions as annotated tags with a manifest: `evolve/<environment>/<name>`."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

import orjson

from evolve.errors import RepositoryError
from evolve.records import Json
from evolve.repository.repository import Repository


class Tagged(NamedTuple):
    """What a tag seals: a commit, and the manifest written with it."""

    commit: str
    manifest: Json


def freeze(repository: Repository, commit: str, tag: str, manifest: Json, *, date: datetime) -> None:
    """Tag a commit with a manifest; the same tag again is done already.

    Raises:
        RepositoryError: the tag exists with another commit or manifest.
    """
    sealed = repository.commit(commit)
    if repository.resolve(f"refs/tags/{tag}"):
        if read_tag(repository, tag) != Tagged(sealed, manifest):
            raise RepositoryError(f"tag {tag} exists already and seals something else; choose another name")
        return
    text = orjson.dumps(manifest, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS)
    message = f"Frozen harness {tag}\n\n".encode() + text + b"\n"
    options = ("--annotate", "--no-sign", "--cleanup=verbatim", "--file=-")
    repository.git.run("tag", *options, tag, sealed, env=repository.signature(date), stdin=message)


def read_tag(repository: Repository, tag: str) -> Tagged:
    """Return the commit and the manifest of a tag.

    Raises:
        RepositoryError: there is no such tag, or evolve did not write it.
    """
    commit = repository.commit(f"refs/tags/{tag}")
    if repository.git.run("cat-file", "-t", f"refs/tags/{tag}") != "tag":
        raise RepositoryError(f"tag {tag} carries no manifest; `evolve freeze` did not make it")
    body = repository.git.run("cat-file", "tag", f"refs/tags/{tag}").split("\n\n", 2)[-1]
    try:
        manifest = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise RepositoryError(f"tag {tag} carries no manifest; `evolve freeze` did not make it") from error
    return Tagged(commit, manifest)


def tags(repository: Repository, environment: str) -> list[str]:
    """Return the names of the tags of an environment's frozen harnesses, sorted."""
    prefix = f"refs/tags/evolve/{environment}/"
    return repository.git.run("for-each-ref", "--format=%(refname:lstrip=2)", prefix).splitlines()
