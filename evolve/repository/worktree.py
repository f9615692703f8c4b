"""Work trees of single commits, for the host's own use; a proposer gets an export, never one of these."""

from __future__ import annotations

import shutil
from pathlib import Path

from evolve.repository.repository import Repository


def add_worktree(repository: Repository, commit: str, path: Path) -> None:
    """Check a commit out at `path`, whatever an earlier attempt left there."""
    sealed = repository.commit(commit)
    remove_worktree(repository, path)
    path.parent.mkdir(parents=True, exist_ok=True)
    # forced twice: an attempt killed half-way leaves its entry registered and locked
    repository.git.run("worktree", "add", "--force", "--force", "--detach", "--quiet", str(path.resolve()), sealed)


def remove_worktree(repository: Repository, path: Path) -> None:
    """Remove the work tree at `path` and forget it; nothing there is fine too."""
    repository.git.ask("worktree", "remove", "--force", "--force", str(path.resolve()))
    shutil.rmtree(path, ignore_errors=True)
    repository.git.ask("worktree", "unlock", str(path.resolve()))
    repository.git.run("worktree", "prune", "--expire=now")
