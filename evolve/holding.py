"""Opens what a workspace has on record: its ledger for reading, or ledger and repository, held by nobody else.

The database is imported where a ledger is opened: it takes longer to import than the rest of a command.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from evolve.clock import clock_of, utc_now
from evolve.config import Config
from evolve.lock import WorkspaceLock
from evolve.repository import Repository, finish_landing, open_repository, remove_stale_locks
from evolve.seal import require_unused, require_whole
from evolve.workspace import Workspace

if TYPE_CHECKING:
    from evolve.store.ledger import Ledger


@contextmanager
def open_ledger(
    workspace: Workspace,
    config: Config,
    *,
    is_read_only: bool = False,
    clock: Callable[[], datetime] = utc_now,
) -> Iterator[Ledger]:
    """Open the ledger of a workspace; `clock` gives the time that it writes down."""
    from evolve.store.ledger import Ledger

    url = config.ledger.url or workspace.ledger_url
    workspace.state.mkdir(exist_ok=True)
    with Ledger(url, is_read_only=is_read_only, clock=clock) as ledger:
        yield ledger


@contextmanager
def read_ledger(workspace: Workspace, config: Config) -> Iterator[Ledger | None]:
    """Open the ledger for reading; None where no run has made one yet.

    Raises:
        SealError: git shows that one was made, and it is gone.
    """
    if not _has_ledger(workspace, config):
        with open_repository(workspace.root) as repository:
            require_unused(repository)
        yield None
        return
    with open_ledger(workspace, config, is_read_only=True) as ledger:
        yield ledger


def _has_ledger(workspace: Workspace, config: Config) -> bool:
    """Tell whether a ledger is there, or was; of one in a database server only the server knows."""
    if not config.ledger.url:
        return workspace.has_ledger
    from evolve.store.engine import sqlite_path

    file = sqlite_path(config.ledger.url)
    return file is None or any(file.parent.glob(f"{file.name}*"))


@dataclass(frozen=True)
class Held:
    """A workspace held by nobody else: its repository, and its ledger open for writing."""

    repository: Repository
    ledger: Ledger
    lock: WorkspaceLock


@contextmanager
def hold_workspace(workspace: Workspace, config: Config, environ: Mapping[str, str]) -> Iterator[Held]:
    """Take the workspace's lock, mend what a killed process left, and see that ledger and git agree.

    Args:
        environ: may stop the clock, as `clock_of` reads it.

    Raises:
        WorkspaceBusy: another process holds it.
        SealError: git shows something that the ledger does not know.
    """
    with _locked(workspace) as (lock, repository):
        if not _has_ledger(workspace, config):  # an empty one in its place would hide the loss
            require_unused(repository)
        with open_ledger(workspace, config, clock=clock_of(environ)) as ledger:
            require_whole(repository, ledger)
            yield Held(repository, ledger, lock)


@contextmanager
def hold_repository(workspace: Workspace) -> Iterator[Repository]:
    """Take the workspace's lock and mend what a killed process left in its repository.

    Raises:
        WorkspaceBusy: another process holds it.
    """
    with _locked(workspace) as (_, repository):
        yield repository


@contextmanager
def _locked(workspace: Workspace) -> Iterator[tuple[WorkspaceLock, Repository]]:
    with WorkspaceLock(workspace.lock_file) as lock, open_repository(workspace.root, lock=lock) as repository:
        remove_stale_locks(repository, lock)
        finish_landing(repository)
        yield lock, repository
