"""Moves harness files onto the branch that the user has checked out, as one commit.

A landing is: note down the commit, move the branch, bring index and work tree along, remove the note. Killed
anywhere, the next landing (or `finish_landing`) completes or forgets it; the user's own edits are never lost.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path

from evolve.disk import in_the_way
from evolve.errors import RepositoryError
from evolve.records import Candidate
from evolve.repository.names import harness_folder
from evolve.repository.repository import Repository
from evolve.repository.trailers import Trailers

_UNFINISHED = {
    "MERGE_HEAD": "a merge",
    "CHERRY_PICK_HEAD": "a cherry-pick",
    "REVERT_HEAD": "a revert",
    "sequencer": "a cherry-pick, or a revert, of several commits",
    "BISECT_LOG": "a bisect",
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase, or `git am`,",
}


def note_path(repository: Repository) -> Path:
    """Return where the commit of an unfinished landing is noted down."""
    return repository.git.folder / "evolve-landing"


def accept_candidate(
    repository: Repository, candidate: Candidate, *, message: str, trailers: Trailers, date: datetime
) -> str:
    """Commit a candidate's harness folder onto the user's branch and return the commit; done already is done.

    Raises:
        RepositoryError: the user's harness is not the candidate's parent, has uncommitted changes, or the
            branch moved meanwhile. Nothing was changed then.
    """
    finish_landing(repository)
    if landed := require_landable(repository, candidate):
        return landed
    folder = harness_folder(candidate.environment)
    files = repository.read_files(candidate.commit, folder)
    return land_files(repository, folder, files, message=message, trailers=trailers, date=date)


def require_landable(repository: Repository, candidate: Candidate, *, onto: str = "HEAD") -> str | None:
    """Return the commit that brought a candidate onto the user's branch; None where that can be done now.

    Args:
        onto: the commit whose harness the candidate's would replace.

    Raises:
        RepositoryError: as `accept_candidate`. Nothing is changed.
    """
    head = repository.commit(onto)
    theirs, ours, base = (
        repository.harness_tree(commit, candidate.environment)
        for commit in (candidate.commit, head, candidate.parent_commit)
    )
    if theirs == base:
        raise RepositoryError(f"candidate {candidate.candidate_id} changes nothing in its harness")
    if ours != base:
        landed = repository.find_candidate(candidate.candidate_id)
        if landed or ours == theirs:
            return landed or head
        raise RepositoryError(_why_not(repository, candidate, head))
    _require_calm(repository, harness_folder(candidate.environment))
    return None


def land_files(
    repository: Repository,
    folder: str,
    files: Mapping[str, bytes],
    *,
    message: str,
    date: datetime,
    trailers: Trailers | None = None,
) -> str:
    """Replace a folder on the user's branch, in one commit, and bring index and work tree along; return the commit.

    The rest of the index and of the work tree stays as it is, staged changes included.
    """
    finish_landing(repository)
    _require_calm(repository, folder)
    head = repository.head_commit()
    commit = repository.commit_files(head, folder, files, message=message, date=date, trailers=trailers)
    return _land(repository, commit, head)


def add_folders(
    repository: Repository, folders: Mapping[str, Mapping[str, bytes]], *, message: str, date: datetime
) -> str:
    """Add folders to the user's branch, in one commit, and bring index and work tree along; return the commit.

    All else stays as it is, staged changes included.

    Args:
        folders: the files of each by path relative to it.

    Raises:
        RepositoryError: something that is not committed lies there. Nothing was changed then.
    """
    finish_landing(repository)
    for folder in folders:
        _require_calm(repository, folder)
    files = {f"{folder}/{path}": content for folder, inside in folders.items() for path, content in inside.items()}
    _refuse_ignored(repository, files)
    head = repository.head_commit()
    commit = repository.commit_files(head, "", files, message=message, date=date, keeps=True)
    return _land(repository, commit, head)


def _refuse_ignored(repository: Repository, paths: Iterable[str]) -> None:
    """Refuse to write over files that git does not speak of as changes."""
    for path in paths:
        if lying := in_the_way(repository.root, path):
            raise RepositoryError(
                f"{lying} is there and git ignores it; `git add --force` and commit it, or move it away"
            )


def _land(repository: Repository, commit: str, head: str) -> str:
    """Move the user's branch from `head` to a commit on top of it, unless that changes nothing."""
    if not repository.differing_paths(head, commit):
        return head
    _write_note(note_path(repository), commit)
    repository.update_ref(repository.branch(), commit, head)
    _bring_along(repository, commit)
    note_path(repository).unlink()
    return commit


def finish_landing(repository: Repository) -> None:
    """Complete a landing that was cut off after the branch moved; forget one that was cut off before.

    Raises:
        RepositoryError: a file of the landing was edited since.
    """
    note = note_path(repository)
    if not note.exists():
        return
    commit = repository.resolve(note.read_text().strip())
    if commit == repository.head_commit():
        _refuse_edited(repository, commit)
        _bring_along(repository, commit)
    note.unlink()


def _refuse_edited(repository: Repository, commit: str) -> None:
    old = repository.commit(f"{commit}^")
    paths = repository.differing_paths(old, commit)
    edited = [path for path in paths if not _is_untouched(repository, path, old, commit)]
    if edited:
        raise RepositoryError(
            f"an accept was cut off after commit {commit[:12]} and {', '.join(edited)} changed since; "
            f"keep your change elsewhere, run `git checkout HEAD -- {edited[0]}`, then accept again"
        )


def _bring_along(repository: Repository, commit: str) -> None:
    """Make index and work tree agree with a commit in the paths that it changed."""
    paths = repository.differing_paths(repository.commit(f"{commit}^"), commit)
    known = set(repository.git.run("ls-files", "-z").split("\0"))
    known |= set(repository.git.run("ls-tree", "-r", "-z", "--name-only", "--full-tree", commit).split("\0"))
    restored = "\0".join(path for path in paths if path in known)
    options = ("--staged", "--worktree", "--pathspec-from-file=-", "--pathspec-file-nul")
    if restored:
        repository.git.run("restore", f"--source={commit}", *options, stdin=restored.encode())


def _is_untouched(repository: Repository, path: str, old: str, new: str) -> bool:
    """Return whether a file is as before the landing, as after it, or as far as a killed git had written it."""
    file = repository.root / path
    if not file.exists():
        return True
    committed = [repository.git.ask("rev-parse", "--verify", "--quiet", f"{commit}:{path}") for commit in (old, new)]
    # the hash of the file as git would commit it, so that line end conversion is no edit
    if repository.git.run("hash-object", f"--path={path}", "--", str(file)) in committed:
        return True
    return committed[1] is not None and _written(repository, new, path).startswith(file.read_bytes())


def _written(repository: Repository, commit: str, path: str) -> bytes:
    """Return a file's content as git writes it to the work tree."""
    return repository.git.run_bytes("cat-file", "--filters", f"{commit}:{path}")


def require_nothing_unfinished(repository: Repository) -> None:
    """Refuse to commit in the middle of what the user has begun: git would refuse too, or take our commit for theirs.

    Raises:
        RepositoryError: names it; or another git is at work.
    """
    for name, what in _UNFINISHED.items():
        if (repository.git.folder / name).exists():
            raise RepositoryError(f"{what} is unfinished in {repository.root}; finish or abort it first")
    if (repository.git.folder / "index.lock").exists():
        raise RepositoryError(f"another git is at work in {repository.root}, or died there and left .git/index.lock")


def _require_calm(repository: Repository, folder: str) -> None:
    repository.branch()  # refuses a detached HEAD
    require_nothing_unfinished(repository)
    changed = repository.changed_paths(folder)
    if changed:
        raise RepositoryError(f"{folder} has uncommitted changes ({', '.join(changed)}); commit or undo them first")


def _why_not(repository: Repository, candidate: Candidate, head: str) -> str:
    """Say which candidate has to be accepted first or, where it is not that, what differs."""
    first = repository.trailers(candidate.parent_commit).candidate
    if first and repository.find_candidate(first) is None:
        return f"candidate {candidate.candidate_id} builds on candidate {first}; accept {first} first"
    folder = harness_folder(candidate.environment)
    paths = ", ".join(repository.differing_paths(candidate.parent_commit, head, folder))
    return (
        f"candidate {candidate.candidate_id} was tested on another harness than the one at HEAD: "
        f"{paths} changed since {candidate.parent_commit[:12]}"
    )


def _write_note(note: Path, commit: str) -> None:
    draft = note.with_name(f"{note.name}.draft")
    with draft.open("w") as stream:
        stream.write(f"{commit}\n")
        stream.flush()
        os.fsync(stream.fileno())
    draft.replace(note)
