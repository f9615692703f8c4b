"""A user's .gitignore in a new workspace: it keeps its lines and gets those of ours that it lacks."""

from __future__ import annotations

from pathlib import Path

from evolve.disk import append_whole
from evolve.errors import UserError
from evolve.repository.repository import Repository

GITIGNORE = ".gitignore"


def require_gitignore_committed(root: Path) -> None:
    """Refuse a .gitignore whose lines would be committed together with ours and are not committed yet.

    Where nothing was ever committed it goes into the first commit.

    Raises:
        UserError: it differs from HEAD, is unknown there, or is no plain file.
    """
    file = root / GITIGNORE
    if file.is_symlink() or (file.exists() and not file.is_file()):
        raise UserError(f"{file} is no plain file; move it away first, or name another folder")
    if not file.exists() or not (root / ".git").exists():
        return
    with Repository(root) as repository:
        if repository.resolve("HEAD") and _is_uncommitted(repository):
            raise UserError(f"{file} has changes that are not committed; commit it first, then lines are added to it")


def _is_uncommitted(repository: Repository) -> bool:
    return repository.folder_tree("HEAD", GITIGNORE) is None or bool(repository.changed_paths(GITIGNORE))


def extend_gitignore(file: Path, ours: bytes) -> None:
    """Append the lines of ours that a .gitignore lacks; made where it is missing. A kill takes no line from it."""
    theirs = file.read_bytes() if file.exists() else b""
    with file.open("ab") as stream:
        append_whole(stream.fileno(), missing_lines(theirs, ours), end=len(theirs))


def missing_lines(theirs: bytes, ours: bytes) -> bytes:
    """Return what makes a .gitignore complete when it is appended: our comment and each line that is not there.

    Where a line takes exceptions from those before it, ours come again after it.
    """
    _, exception, after = (b"\n" + theirs).rpartition(b"\n!")
    known = {line.rstrip() for line in after.splitlines()[bool(exception) :]}
    lines = [line for line in ours.splitlines() if line.startswith(b"#") or line not in known]
    if all(line.startswith(b"#") for line in lines):
        return b""
    end = b"\r\n" if b"\r\n" in theirs else b"\n"
    before = end if theirs and not theirs.endswith(b"\n") else b""
    return before + b"".join(line + end for line in lines)
