"""Work trees of single commits, for the host's own use; a proposer gets an export, never one of these."""

from __future__ import annotations

import shutil
from pathlib import Path

from evolve.repository.workspace import Workspace


def add_worktree(workspace: Workspace, commit: str, path: Path) -> None:
    """Check a commit out at `path`, whatever an earlier attempt left there."""
    sealed = workspace.commit(commit)
    remove_worktree(workspace, path)
    path.parent.mkdir(parents=True, exist_ok=True)
    # forced twice: an attempt killed half-way leaves its entry registered and locked
    workspace.git.run("worktree", "add", "--force", "--force", "--detach", "--quiet", str(path.resolve()), sealed)


def remove_worktree(workspace: Workspace, path: Path) -> None:
    """Remove the work tree at `path` and forget it; nothing there is fine too."""
    workspace.git.ask("worktree", "remove", "--force", "--force", str(path.resolve()))
    shutil.rmtree(path, ignore_errors=True)
    workspace.git.ask("worktree", "unlock", str(path.resolve()))
    workspace.git.run("worktree", "prune", "--expire=now")
