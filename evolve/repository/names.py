"""Where things are kept in a workspace: folders and refs made of plain names."""

from __future__ import annotations

import re

from evolve.errors import RepositoryError

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


RUNS = "refs/heads/evolve/"
CANDIDATES = "refs/evolve/candidates/"
LOOKS = "refs/evolve/looks/"


def harness_folder(environment: str) -> str:
    """Return where the harness of an environment lies, relative to the top of the workspace."""
    return f"harness_artifacts/{_name(environment)}"


def run_branch(run_id: str) -> str:
    """Return the branch on which a run's accepted candidates follow one another."""
    return f"{RUNS}{_name(run_id)}"


def candidate_ref(candidate_id: str) -> str:
    """Return the ref that keeps a candidate, accepted or not, from being collected as garbage."""
    return f"{CANDIDATES}{_name(candidate_id)}"


def look_ref(look_id: str) -> str:
    """Return the ref under which git remembers a look at held-out tasks."""
    return f"{LOOKS}{_name(look_id)}"


def _name(name: str) -> str:
    """Return a name that is safe in paths and refs.

    Raises:
        RepositoryError: it is not.
    """
    if not _NAME.fullmatch(name) or ".." in name or name.endswith((".", ".lock")):
        raise RepositoryError(f"{name!r} cannot name a folder or a ref: use letters, digits, '-', '_' and '.'")
    return name
