"""The layout of a workspace on disk, and how one is made."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from evolve.disk import in_the_way
from evolve.errors import UserError
from evolve.harness.artifact import read_folder
from evolve.lock import alone_in
from evolve.prompts import render
from evolve.repository import (
    GITIGNORE,
    Repository,
    extend_gitignore,
    init_repository,
    require_gitignore_committed,
    require_nothing_unfinished,
    require_outside_git,
)
from evolve.resources import resource

ARTIFACTS = "harness_artifacts"
FIRST_MESSAGE = "Start an evolve workspace"
USER_PROMPTS = ("brief.md.j2", "agent_task.md.j2", "openai_proposer.md.j2")


@dataclass(frozen=True)
class Workspace:
    """A git repository with evolve.toml, harness_artifacts/, prompts/, traces/ and the state in .evolve/."""

    root: Path

    @property
    def config_file(self) -> Path:
        """evolve.toml."""
        return self.root / "evolve.toml"

    @property
    def traces(self) -> Path:
        """Where episodes are kept; not in git."""
        return self.root / "traces"

    @property
    def prompts(self) -> Path:
        """Templates that outrank the packaged ones."""
        return self.root / "prompts"

    @property
    def state(self) -> Path:
        """Ledger, lock, worktrees; not in git."""
        return self.root / ".evolve"

    @property
    def ledger_url(self) -> str:
        """URL of the default ledger."""
        return f"sqlite:///{self.state / 'ledger.sqlite'}"

    @property
    def has_ledger(self) -> bool:
        """True where the default ledger is, or was: of one that was removed something is left beside it."""
        return any(self.state.glob("ledger.sqlite*"))

    @property
    def lock_file(self) -> Path:
        """One writer at a time."""
        return self.state / "lock"

    @property
    def stop_file(self) -> Path:
        """A file of this name ends a run cleanly."""
        return self.root / "STOP"

    @property
    def reports(self) -> Path:
        """Where HTML reports go."""
        return self.state / "reports"

    @property
    def transcripts(self) -> Path:
        """What proposers said while they worked."""
        return self.state / "transcripts"

    def harness_path(self, environment: str) -> str:
        """Path of a harness folder inside the repository."""
        return f"{ARTIFACTS}/{environment}"

    def completions(self, fingerprint_digest: str) -> Path:
        """The completion cache of one model."""
        return self.traces / "completions" / f"{fingerprint_digest[:16]}.jsonl"

    def candidate_folder(self, candidate_id: str) -> Path:
        """What a proposer gets: `workspace/` to edit and `evidence/` to read."""
        return self.state / "candidates" / candidate_id

    def worktree(self, candidate_id: str) -> Path:
        """The host's own worktree of a candidate."""
        return self.state / "worktrees" / candidate_id


def find_workspace(start: Path) -> Workspace:
    """Return the workspace that holds `start`.

    Raises:
        UserError: no folder from there upwards has an evolve.toml.
    """
    _require_utf8(start.resolve())
    for folder in (start.resolve(), *start.resolve().parents):
        if (folder / "evolve.toml").is_file():
            return Workspace(folder)
    raise UserError(
        f"{start.resolve()} is not in an evolve workspace (no evolve.toml); make one with `evolve init PATH`"
    )


def start_workspace(
    root: Path, environments: Sequence[str], *, date: datetime, further: Mapping[str, bytes] | None = None
) -> str:
    """Write the starting files and commit them, and nothing else that lies there; return the commit.

    A .gitignore that lies there keeps its lines and gets ours. A folder that does not exist yet appears whole or not
    at all. In one that does, a start that was killed leaves some of the files, and the next one says so.

    Args:
        environments: the first is the one that `evolve run` takes by default.
        further: files by path beside the usual ones, or in their place.

    Raises:
        UserError: `root` is no folder, is in no work tree, is a workspace, holds one of the files already, or a
            .gitignore that is not committed; nothing was changed then.
        WorkspaceBusy: another process makes something there all the while.
        RepositoryError: git is missing or refuses; or a merge or the like is unfinished, and nothing was changed.
    """
    root = root.resolve()
    _require_utf8(root)
    files = starting_files(environments) | dict(further or {})
    if root.exists() and not root.is_dir():
        raise UserError(f"{root} is a file; name a folder")
    require_outside_git(root)
    try:
        if not root.parent.is_dir():
            root.parent.mkdir(parents=True, exist_ok=True)
    except (FileNotFoundError, NotADirectoryError, FileExistsError) as error:
        raise UserError(f"{root} cannot be made ({root.parent} is no folder); name another folder") from error
    with alone_in(root if root.exists() else root.parent):
        if not root.exists():
            return _appear(root, files, date)
        _refuse_workspace(root)
        _refuse_taken(root, files.keys() - {GITIGNORE})
        require_gitignore_committed(root)
        if (root / ".git").exists():
            with Repository(root) as repository:
                require_nothing_unfinished(repository)
        return _start_in(root, files, date)


def _appear(root: Path, files: dict[str, bytes], date: datetime) -> str:
    draft = root.with_name(f".{root.name}.new")
    remove_folder(draft)
    draft.mkdir()
    commit = _start_in(draft, files, date)
    draft.rename(root)
    return commit


def _start_in(folder: Path, files: dict[str, bytes], date: datetime) -> str:
    with init_repository(folder) as repository:
        extend_gitignore(folder / GITIGNORE, files[GITIGNORE])
        write_files(folder, {path: content for path, content in files.items() if path != GITIGNORE})
        _commit_alone(repository, sorted(files), date)
        return repository.head_commit()


def starting_files(environments: Iterable[str]) -> dict[str, bytes]:
    """Return the files of a new workspace by path: configuration, seed harnesses, prompts.

    Args:
        environments: the first is the one that `evolve run` takes by default.
    """
    names = list(environments)
    files = {
        "evolve.toml": render("workspace/evolve.toml.j2", environments=names).encode(),
        ".env.example": render("workspace/env.example.j2").encode(),
        GITIGNORE: render("workspace/gitignore.j2").encode(),
        "traces/.gitkeep": b"",
    }
    for name in USER_PROMPTS:
        files[f"prompts/{name}"] = (resource("prompts") / name).read_bytes()
    for name in names:
        for path, content in seed_harness(name).items():
            files[f"{ARTIFACTS}/{name}/{path}"] = content
    return files


def seed_harness(environment: str) -> dict[str, bytes]:
    """Return the seed harness of an environment; one that ships none gets an empty harness."""
    folder = resource("harness_artifacts") / environment
    if folder.is_dir():
        return read_folder(folder)
    return {"harness.toml": f'schema_version = 1\nenvironment = "{environment}"\n'.encode()}


def write_files(root: Path, files: dict[str, bytes]) -> None:
    """Write the files of a new workspace, evolve.toml last: where it is, a killed start left nothing unwritten.

    Raises:
        UserError: one of them exists already; nothing is written then.
    """
    _refuse_taken(root, files)
    for path in sorted(files, key=lambda path: path == "evolve.toml"):
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(files[path])


def _require_utf8(path: Path) -> None:
    try:
        str(path).encode()
    except UnicodeEncodeError:
        shown = os.fsencode(path).decode(errors="backslashreplace")
        raise UserError(f"the path {shown} is not UTF-8, and ledger and reports hold text; rename the folder") from None


def adding(root: Path, environment: str) -> str:
    """Return the command that adds an environment to a workspace."""
    return f"evolve init {shlex.quote(str(root))} --env {environment}"


def _refuse_workspace(root: Path) -> None:
    if Workspace(root).config_file.is_file():
        raise UserError(
            f"{root} is a workspace already (it holds evolve.toml); `{adding(root, 'NAME')}` adds an environment "
            "to it, and a new one needs another folder"
        )


def _refuse_taken(root: Path, files: Iterable[str]) -> None:
    taken = sorted(name for name in (in_the_way(root, path) for path in files) if name)
    if taken:
        raise UserError(f"{root} holds {taken[0]} already; move it away first, or name another folder")


def _commit_alone(repository: Repository, paths: Sequence[str], date: datetime) -> None:
    """Commit these paths alone: what the user has staged stays staged."""
    repository.git.run("add", "--force", "--", *paths)
    options = ("--quiet", "--no-verify", "--no-gpg-sign", f"--message={FIRST_MESSAGE}", "--only")
    repository.git.run("commit", *options, "--", *paths, env=repository.signature(date))


def remove_folder(folder: Path) -> None:
    """Remove a scratch folder of ours, whatever state a kill left it in."""
    shutil.rmtree(folder, ignore_errors=True)
