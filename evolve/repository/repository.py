"""A user's repository as the home of harness versions: read them, write them, name them.

Commits are made from objects and a private index, so neither the user's index nor the work tree is touched,
and a commit made again from the same inputs and date has the same id.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from types import TracebackType

from evolve.errors import RepositoryError
from evolve.lock import WorkspaceLock
from evolve.repository.command import Git, create_repository
from evolve.repository.names import harness_folder
from evolve.repository.trailers import Trailers

_FULL_ID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_FILE_MODES = ("100644", "100755")
_IDENTITY = {"name": "evolve", "email": "evolve@localhost"}
_ROLES = ("AUTHOR", "COMMITTER")
SCRATCH = "evolve-index-"
"""Beginning of the name of a commit's private index, a folder in .git."""

_START = datetime(2000, 1, 1, tzinfo=UTC)


def open_repository(root: Path, *, lock: WorkspaceLock | None = None) -> Repository:
    """Open the repository whose top folder is `root`; who writes hands in the workspace lock.

    Raises:
        RepositoryError: git is missing, there is no repository, it is bare, or it has no commit yet.
    """
    repository = Repository(root, lock=lock)
    if repository.resolve("HEAD") is None:
        repository.close()
        raise RepositoryError(f"{root} has no commit yet; commit its files first")
    return repository


def init_repository(root: Path) -> Repository:
    """Make `root` a repository with a first, empty commit where it is none, and open it."""
    create_repository(root)
    repository = Repository(root)
    if repository.resolve("HEAD") is None:
        repository.git.run(
            "hash-object", "-t", "tree", "-w", "--stdin"
        )  # git knows the empty tree but does not store it
        first = repository.commit_files(None, "", {}, message="Start of the workspace", date=_START)
        repository.update_ref(repository.branch(), first, None)
    return repository


class Repository:
    """A repository with a work tree. Close it, or use it in a `with` block."""

    def __init__(self, root: Path, *, lock: WorkspaceLock | None = None) -> None:
        self.root = root
        self.git = Git(root, lock=lock)

    def __enter__(self) -> Repository:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Release the repository."""
        self.git.close()

    # reading

    def resolve(self, name: str) -> str | None:
        """Return the commit id that a ref, tag or id stands for, or None."""
        return None if name.startswith("-") else self.git.ask("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")

    def commit(self, name: str) -> str:
        """Return the commit id that a name stands for; a full id is taken at its word.

        Raises:
            RepositoryError: nothing of that name exists.
        """
        found = name if _FULL_ID.fullmatch(name) else self.resolve(name)
        if found is None:
            raise RepositoryError(f"{self.root} has no commit {name!r}")
        return found

    def head_commit(self) -> str:
        """Return the commit that the user has checked out."""
        return self.commit("HEAD")

    def branch(self) -> str:
        """Return the full name of the branch that the user has checked out.

        Raises:
            RepositoryError: HEAD is detached.
        """
        branch = self.git.ask("symbolic-ref", "--quiet", "HEAD")
        if branch is None:
            raise RepositoryError(f"{self.root} has no branch checked out (detached HEAD); check one out first")
        return branch

    def changed_paths(self, folder: str = "") -> list[str]:
        """Return the paths under `folder` that differ from HEAD in the index or the work tree, new files included."""
        answer = self.git.run(
            "status", "--porcelain", "-z", "--no-renames", "--untracked-files=all", "--", folder or "."
        )
        return [entry[3:] for entry in answer.split("\0") if entry]

    def folder_tree(self, commit: str, folder: str) -> str | None:
        """Return the id of a folder's tree: equal ids are equal contents. None where the folder is missing."""
        return self.git.ask("rev-parse", "--verify", "--quiet", f"{self.commit(commit)}:{folder}")

    def harness_tree(self, commit: str, environment: str) -> str | None:
        """Return the id of the tree of an environment's harness folder, or None where it is missing."""
        return self.folder_tree(commit, harness_folder(environment))

    def read_files(self, commit: str, folder: str) -> dict[str, bytes]:
        """Return the files of a folder at a commit, by path relative to the folder.

        Raises:
            RepositoryError: the folder holds a link or a submodule.
        """
        blobs = self._blobs(commit, folder)
        batch = self.git.run_bytes(
            "cat-file", "--batch", stdin="".join(f"{blob}\n" for blob in blobs.values()).encode()
        )
        start = len(folder) + 1 if folder else 0
        return {path[start:]: content for path, content in zip(blobs, _split_batch(batch), strict=True)}

    def _blobs(self, commit: str, folder: str) -> dict[str, str]:
        """Return the blob id of each file under a folder, by path from the top."""
        place = [f"{folder}/"] if folder else []
        blobs = {}
        for line in self.git.run("ls-tree", "-r", "-z", "--full-tree", self.commit(commit), "--", *place).split("\0"):
            if line:
                entry, path = line.split("\t", 1)
                mode, _, blob = entry.split()
                if mode not in _FILE_MODES:
                    raise RepositoryError(f"{path} at {commit[:12]} is a link or a submodule; a harness has files only")
                blobs[path] = blob
        return blobs

    def diff(self, old: str, new: str, folder: str) -> str:
        """Return the unified diff of a folder between two commits, independent of the user's settings."""
        options = ("-r", "-p", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color")
        return self.git.run("diff-tree", *options, self.commit(old), self.commit(new), "--", folder)

    def differing_paths(self, old: str, new: str, folder: str = "") -> list[str]:
        """Return the paths whose content differs between two commits."""
        options = ("-r", "-z", "--name-only", "--no-renames")
        answer = self.git.run(
            "diff-tree", *options, self.commit(old), self.commit(new), "--", *([folder] if folder else [])
        )
        return [path for path in answer.split("\0") if path]

    def message(self, commit: str) -> str:
        """Return the message of a commit."""
        return self.git.run("log", "-1", "--no-show-signature", "--format=%B", self.commit(commit))

    def trailers(self, commit: str) -> Trailers:
        """Return what a commit says of itself."""
        return Trailers.parse(self.message(commit))

    def find_candidate(self, candidate_id: str, *, within: str = "HEAD") -> str | None:
        """Return the newest commit in the history of `within` that carries a candidate's trailer, or None."""
        options = ("--format=%H", "--fixed-strings", f"--grep=Evolve-Candidate: {candidate_id}")
        for commit in self.git.run("log", "--no-show-signature", *options, self.commit(within)).split():
            if self.trailers(commit).candidate == candidate_id:
                return commit
        return None

    def export(self, commit: str, folder: str, target: Path) -> None:
        """Write the files of a folder to `target`, which must not exist: plain files, nothing of git.

        The folder appears whole or not at all.
        """
        if target.exists():
            raise RepositoryError(f"{target} exists already")
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".export-", dir=target.parent) as scratch:
            draft = Path(scratch, "files")
            draft.mkdir()
            for path, content in self.read_files(commit, folder).items():
                (draft / path).parent.mkdir(parents=True, exist_ok=True)
                (draft / path).write_bytes(content)
            draft.rename(target)

    # writing

    def commit_files(
        self,
        parent: str | None,
        folder: str,
        files: Mapping[str, bytes],
        *,
        message: str,
        date: datetime,
        trailers: Trailers | None = None,
        keeps: bool = False,
    ) -> str:
        """Make a commit that is its parent with the content of `folder` replaced by `files`; return its id.

        No ref moves. The same arguments give the same commit.

        Args:
            parent: None for a first commit.
            files: content by path relative to `folder`.
            date: author's and committer's date; must know its time zone.
            keeps: files of the folder that `files` does not name stay.
        """
        for path in files:
            _check_path(path)
        prefix = f"{folder}/" if folder else ""
        stale = self._blobs(parent, folder) if parent and not keeps else {}
        with tempfile.TemporaryDirectory(prefix=SCRATCH, dir=self.git.folder) as scratch:
            blobs = dict(zip(files, self._store(files.values(), Path(scratch)), strict=True))
            index = {"GIT_INDEX_FILE": str(Path(scratch, "index"))}
            self.git.run("read-tree", self.commit(parent) if parent else "--empty", env=index)
            lines = [f"0 {blob}\t{path}\0" for path, blob in stale.items()]
            lines += [f"100644 {blob}\t{prefix}{path}\0" for path, blob in blobs.items()]
            self.git.run("update-index", "-z", "--index-info", env=index, stdin="".join(lines).encode())
            tree = self.git.run("write-tree", env=index)
        text = (trailers or Trailers()).under(message)
        parents = ["-p", self.commit(parent)] if parent else []
        return self.git.run("commit-tree", tree, *parents, "-F", "-", env=self.signature(date), stdin=text.encode())

    def _store(self, contents: Iterable[bytes], scratch: Path) -> list[str]:
        """Store each content as a blob, byte for byte, and return the ids."""
        names = []
        for number, content in enumerate(contents):
            Path(scratch, str(number)).write_bytes(content)
            names.append(str(Path(scratch, str(number))))
        return self.git.run("hash-object", "-w", "--no-filters", "--", *names).split() if names else []

    def update_ref(self, ref: str, new: str, old: str | None) -> None:
        """Move a ref from `old` (None: it must not exist) to `new`; done already counts as done.

        Raises:
            RepositoryError: the ref is somewhere else.
        """
        current = self.resolve(ref)
        if current == new:
            return
        if current != old:
            raise RepositoryError(f"{ref} is at {(current or 'nothing')[:12]}, not at {(old or 'nothing')[:12]}")
        self.git.run("update-ref", "--create-reflog", "-m", "evolve", ref, new, old or "", env=self.signature(None))

    def signature(self, date: datetime | None) -> dict[str, str]:
        """Return the variables that sign a commit or tag: the user's identity, or evolve's where there is none."""
        stamp = {} if date is None else {f"GIT_{role}_DATE": _stamp(date) for role in _ROLES}
        return {**stamp, **self._borrowed_identity()}

    def _borrowed_identity(self) -> dict[str, str]:
        borrowed = {}
        for field, ours in _IDENTITY.items():
            if self.git.ask("config", f"user.{field}") is None:
                names = [f"GIT_{role}_{field.upper()}" for role in _ROLES]
                borrowed.update({name: ours for name in names if name not in os.environ})
        return borrowed


def _stamp(date: datetime) -> str:
    if date.tzinfo is None:
        raise ValueError("a commit date must know its time zone")
    return f"@{int(date.timestamp())} +0000"


def _check_path(path: str) -> None:
    parts = path.split("/")
    is_plain = path == str(PurePosixPath(path)) and not path.startswith("/") and path.isprintable()
    if not is_plain or any(part == ".." or part.casefold() == ".git" for part in parts):
        raise RepositoryError(f"{path!r} is no path inside a folder")


def _split_batch(batch: bytes) -> Iterator[bytes]:
    """Split what `cat-file --batch` printed: a header line with the size, the content, a line end."""
    at = 0
    while at < len(batch):
        end = batch.index(b"\n", at)
        size = int(batch[at:end].split()[2])
        yield batch[end + 1 : end + 1 + size]
        at = end + size + 2
