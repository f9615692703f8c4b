"""Marks: small JSON records under refs of their own, so that what happened is known to git beside the ledger."""

from __future__ import annotations

import orjson

from evolve.errors import RepositoryError
from evolve.records import Json
from evolve.repository.repository import Repository


def write_mark(repository: Repository, ref: str, record: Json) -> None:
    """Put a record under a ref, in place of what was there."""
    text = orjson.dumps(record, option=orjson.OPT_SORT_KEYS)
    blob = repository.git.run("hash-object", "-w", "--stdin", stdin=text)
    repository.git.run("update-ref", ref, blob, env=repository.signature(None))


def read_marks(repository: Repository, prefix: str) -> dict[str, Json]:
    """Return the records under all refs that begin with `prefix`, by ref.

    Raises:
        RepositoryError: one of them is no record of evolve.
    """
    return {ref: _record(repository, ref) for ref in refs_under(repository, prefix)}


def _record(repository: Repository, ref: str) -> Json:
    """Return the record under a ref; whoever can write to git can put anything there."""
    try:
        record = orjson.loads(repository.git.run_bytes("cat-file", "blob", ref))
    except orjson.JSONDecodeError:
        record = None
    if not isinstance(record, dict):
        raise RepositoryError(f"{ref} holds no record of evolve; restore it from a copy")
    return record


def refs_under(repository: Repository, *prefixes: str) -> list[str]:
    """Return the full names of the refs that begin with one of `prefixes`, sorted."""
    return repository.git.run("for-each-ref", "--format=%(refname)", *prefixes).splitlines()
