"""Where what a proposer said is kept: a file for each attempt, and none is written over by a later attempt or run."""

from __future__ import annotations

from itertools import chain, count
from pathlib import Path

from evolve.protocols import Assignment


def new_transcript(folder: Path, assignment: Assignment, by: str, suffix: str) -> Path:
    """Make an empty file for one attempt of one proposer and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"{assignment.environment}-{assignment.number:03d}-{by}"
    names = chain([f"{stem}{suffix}"], (f"{stem}.{attempt}{suffix}" for attempt in count(2)))
    return next(path for path in (folder / name for name in names) if _is_made(path))


def _is_made(path: Path) -> bool:
    try:
        path.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True
