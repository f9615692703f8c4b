"""Runs git commands in one repository, through GitPython's command wrapper.

Each command keeps the user's configuration except for what could run other programs or start background
work. Commands of one process run one after another: git's own worktree commands are not safe side by side.
"""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import IO, Any, NamedTuple

from evolve.disk import in_words, why_unwritable
from evolve.errors import EvolveError, RepositoryError, StoreError
from evolve.lock import WorkspaceLock

_SETTINGS = (
    "core.hooksPath=/dev/null",  # no hook of anybody's runs because of us
    "core.fsmonitor=false",  # its value may name a program
    "gc.auto=0",  # no background work that a kill would leave half done
    "maintenance.auto=false",
    "i18n.commitEncoding=UTF-8",
    "i18n.logOutputEncoding=UTF-8",
    "advice.detachedHead=false",
)
_OPTIONS = [part for setting in _SETTINGS for part in ("-c", setting)]
_QUIET = {
    "GIT_OPTIONAL_LOCKS": "0",  # reading never takes index.lock
    "GIT_LITERAL_PATHSPECS": "1",  # a file named "*" is a file
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",  # a commit id means what it says
}
_REDIRECTIONS = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_COMMON_DIR",
    "GIT_NAMESPACE",
)


class _Answer(NamedTuple):
    status: int
    output: bytes
    complaint: str


class Git:
    """The commands of the repository whose top folder is `root`.

    Args:
        lock: handed on to each command, so that a git that outlives a killed evolve keeps the workspace to itself.

    Raises:
        RepositoryError: git is missing, `root` is no repository or a bare one, or variables point elsewhere.
    """

    def __init__(self, root: Path, *, lock: WorkspaceLock | None = None) -> None:
        redirected = [name for name in _REDIRECTIONS if name in os.environ]
        if redirected:
            raise RepositoryError(f"{', '.join(redirected)} is set, as inside a git hook; unset it and run again")
        library = _load_library()
        try:
            self._repository = library.Repo(root)
        except (library.NoSuchPathError, library.InvalidGitRepositoryError) as error:
            raise RepositoryError(
                f"{root} is not the top folder of a git repository; make it one (`git init`, then commit its files), "
                "or make a new workspace with `evolve init PATH`"
            ) from error
        self._turn = threading.RLock()
        self._lock = lock
        self.folder = Path(self._repository.git_dir)
        self.common_folder = Path(self._repository.common_dir)
        if self._repository.bare:
            self.close()
            raise RepositoryError(f"{root} is a bare repository; evolve needs one with a work tree")

    def close(self) -> None:
        """Release what GitPython holds, helper processes included."""
        self._repository.close()

    def run(self, *arguments: str, env: Mapping[str, str] | None = None, stdin: bytes = b"") -> str:
        """Run a command and return what it printed, without the last line end.

        Raises:
            RepositoryError: it failed; the message is git's own.
            StoreError: it failed, and the disk takes no more.
        """
        return self.run_bytes(*arguments, env=env, stdin=stdin).decode("utf-8", "surrogateescape").removesuffix("\n")

    def run_bytes(self, *arguments: str, env: Mapping[str, str] | None = None, stdin: bytes = b"") -> bytes:
        """Run a command and return what it printed, byte for byte."""
        answer = self._execute(arguments, env or {}, stdin)
        if answer.status != 0:
            raise _failure(self.common_folder, arguments[0], answer.complaint or f"exit status {answer.status}")
        return answer.output

    def ask(self, *arguments: str) -> str | None:
        """Run a command whose failure is an answer: None then, else what it printed."""
        answer = self._execute(arguments, {}, b"")
        return answer.output.decode("utf-8", "surrogateescape").removesuffix("\n") if answer.status == 0 else None

    def _execute(self, arguments: tuple[str, ...], env: Mapping[str, str], stdin: bytes) -> _Answer:
        with self._turn, tempfile.TemporaryFile() as stream:
            return self._call(["git", *_OPTIONS, *arguments], {**_QUIET, **env}, _filled(stream, stdin))

    def _call(self, command: list[str], env: Mapping[str, str], stdin: IO[bytes]) -> _Answer:
        status, output, complaint = self._repository.git.execute(
            command,
            env=env,
            istream=stdin,
            with_extended_output=True,
            with_exceptions=False,
            stdout_as_string=False,
            strip_newline_in_stdout=False,
            start_new_session=True,  # a terminal's Ctrl-C ends no command halfway
            pass_fds=self._lock.descriptors if self._lock else (),
        )
        return _Answer(status, output, complaint.strip())


def require_outside_git(folder: Path) -> None:
    """Refuse a folder that is a bare repository, or lies in one or in a .git: nothing there is in a work tree.

    Raises:
        RepositoryError: names the repository.
    """
    for place in (folder, *folder.parents):
        if (place / "HEAD").is_file() and (place / "objects").is_dir() and (place / "refs").is_dir():
            raise RepositoryError(
                f"{place} is a bare repository or a .git; a workspace needs a work tree: name a folder outside, "
                "or a clone of the repository"
            )


def create_repository(root: Path) -> None:
    """Make an empty repository whose first branch is `main`; leave an existing one as it is."""
    root.mkdir(parents=True, exist_ok=True)
    library = _load_library()
    try:
        library.Repo.init(root, initial_branch="main").close()
    except library.GitCommandError as error:
        raise _failure(root, "init", error.stderr.strip()) from error


def _failure(folder: Path, command: str, complaint: str) -> EvolveError:
    """Return why git failed: git tells of a disk that takes no more in words only, so the disk is asked."""
    refusal = why_unwritable(folder)
    if refusal is not None:
        return StoreError(f"git {command} in {folder}: {in_words(refusal)}")
    return RepositoryError(f"git {command}: {complaint}")


def _filled(stream: IO[bytes], content: bytes) -> IO[bytes]:
    stream.write(content)
    stream.seek(0)
    return stream


def _load_library() -> Any:
    """Import GitPython late: its import looks for the git program and fails without one."""
    try:
        import git
    except ImportError as error:
        raise RepositoryError("the git program was not found; install git and run again") from error
    library: ModuleType = git
    return library
