"""Work trees of single commits, for the host's own use; a proposer gets an export, never one of these."""

from __future__ import annotations

import shutil
from pathlib import Path
from string import digits

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
    _forget(repository, path)
    repository.git.run("worktree", "prune", "--expire=now")


def _forget(repository: Repository, path: Path) -> None:
    """Remove what a git that was killed as it began left of an entry: git itself keeps it, locked, for good.

    Only under names that git makes of `path`, and only where no checkout belongs to it.
    """
    for entry in repository.git.common_folder.joinpath("worktrees").glob(f"{path.name}*"):
        if not entry.name.removeprefix(path.name).strip(digits) and not _is_checked_out(entry):
            shutil.rmtree(entry, ignore_errors=True)


def _is_checked_out(entry: Path) -> bool:
    try:
        checkout = (entry / "gitdir").read_text("utf-8").strip()
    except (OSError, ValueError):
        return False
    return bool(checkout) and (entry / checkout).exists()
