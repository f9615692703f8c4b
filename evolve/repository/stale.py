"""Removes lock files that a killed git of ours left behind, and no others.

In what only evolve writes (its refs, its work trees) a lock older than the workspace lock has no living
owner. The user's own index, HEAD and branch were locked by us only while a landing was under way.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from evolve.errors import WorkspaceBusy
from evolve.lock import WorkspaceLock
from evolve.repository.landing import note_path
from evolve.repository.workspace import Workspace


def remove_stale_locks(workspace: Workspace, lock: WorkspaceLock) -> list[Path]:
    """Remove stale lock files and return their paths. Needs the workspace lock to be held.

    Raises:
        WorkspaceBusy: the lock is not held.
    """
    if lock.held_since is None:
        raise WorkspaceBusy("lock files are removed only while the workspace lock is held")
    removed = [path for path in _ours(workspace) if _modified(path) < lock.held_since]
    note = note_path(workspace)
    if note.exists():
        begun = note.stat().st_mtime
        removed += [path for path in _users(workspace) if begun <= _modified(path) < lock.held_since]
    for path in removed:
        path.unlink(missing_ok=True)
    return removed


def _ours(workspace: Workspace) -> Iterator[Path]:
    for folder in ("refs/heads/evolve", "refs/evolve", "refs/tags/evolve"):
        yield from workspace.git.common_folder.joinpath(folder).rglob("*.lock")


def _users(workspace: Workspace) -> Iterator[Path]:
    branch = workspace.git.common_folder / f"{workspace.branch()}.lock"
    places = (workspace.git.folder / "index.lock", workspace.git.folder / "HEAD.lock", branch)
    yield from (path for path in places if path.exists())


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return float("inf")
