"""Makes a workspace: the starting files, in a repository, in one commit."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from evolve.assembly import clock_of
from evolve.errors import UserError
from evolve.repository import Repository, init_repository
from evolve.workspace import starting_files, write_files

MESSAGE = "Start an evolve workspace"


def start_workspace(root: Path, environments: Sequence[str]) -> str:
    """Write the starting files and commit them, and nothing else that lies there; return the commit.

    Raises:
        UserError: `root` is no folder, or holds one of the files already; nothing was changed then.
        RepositoryError: git is missing or refuses.
    """
    files = starting_files(environments)
    if root.exists() and not root.is_dir():
        raise UserError(f"{root} is a file; name a folder")
    taken = sorted(path for path in files if (root / path).exists())
    if taken:
        raise UserError(f"{root} holds {taken[0]} already; choose an empty folder, or remove it first")
    with init_repository(root) as repository:
        write_files(root, files)
        _commit(repository, sorted(files))
        return repository.head_commit()


def _commit(repository: Repository, paths: Sequence[str]) -> None:
    """Commit these paths alone: what the user has staged stays staged."""
    signature = repository.signature(clock_of(os.environ)())
    repository.git.run("add", "--force", "--", *paths)
    options = ("--quiet", "--no-verify", "--no-gpg-sign", f"--message={MESSAGE}", "--only")
    repository.git.run("commit", *options, "--", *paths, env=signature)
