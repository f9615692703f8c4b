"""Removes lock files and private indexes that a killed git of ours left behind, and nothing else.

In what only evolve writes (its refs, its work trees) a lock older than the workspace lock has no living
owner. The user's own index, HEAD and branch were locked by us only while a landing was under way.
A lock from the future is of the past too: the clock was set back since.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from evolve.errors import WorkspaceBusy
from evolve.lock import WorkspaceLock
from evolve.repository.landing import note_path
from evolve.repository.repository import SCRATCH, Repository

FUTURE_S = 60
"""A lock that is younger than now by more than this was made before the clock was set back."""


def remove_stale_locks(repository: Repository, lock: WorkspaceLock) -> list[Path]:
    """Remove stale lock files and return their paths. Needs the workspace lock to be held.

    Raises:
        WorkspaceBusy: the lock is not held.
    """
    if lock.held_since is None:
        raise WorkspaceBusy("lock files are removed only while the workspace lock is held")
    removed = [path for path in _ours(repository) if _is_old(path, lock.held_since)]
    note = note_path(repository)
    if note.exists():
        begun = note.stat().st_mtime
        mine = (path for path in _users(repository) if begun <= _modified(path))
        removed += [path for path in mine if _is_old(path, lock.held_since)]
    for path in removed:
        path.unlink(missing_ok=True)
    for folder in repository.git.folder.glob(f"{SCRATCH}*"):
        shutil.rmtree(folder, ignore_errors=True)
    return removed


def _ours(repository: Repository) -> Iterator[Path]:
    for folder in ("refs/heads/evolve", "refs/evolve", "refs/tags/evolve"):
        yield from repository.git.common_folder.joinpath(folder).rglob("*.lock")


def _users(repository: Repository) -> Iterator[Path]:
    branch = repository.git.common_folder / f"{repository.branch()}.lock"
    places = (repository.git.folder / "index.lock", repository.git.folder / "HEAD.lock", branch)
    yield from (path for path in places if path.exists())


def _is_old(path: Path, held_since: float) -> bool:
    return _modified(path) < held_since or time.time() + FUTURE_S < _modified(path) < float("inf")


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return float("inf")
