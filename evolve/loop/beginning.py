"""Which run begins or goes on, and whether it may: what is asked before anything is opened for it. Plays nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from evolve.config import Config
from evolve.config.sources import with_whole_paths
from evolve.errors import UserError
from evolve.holding import Held
from evolve.records import Json
from evolve.repository import Repository, harness_folder
from evolve.store import RunEntry, RunStatus
from evolve.workspace import adding

if TYPE_CHECKING:
    from evolve.store.ledger import Ledger

FREE_TO_CHANGE = ("budget", "iterations", "rollout", "ledger")
"""Sections of the configuration that a resumed run may change: they decide how long and how fast, not what."""


@dataclass(frozen=True)
class Start:
    """The run that begins or goes on, and the commit that it began from."""

    run_id: str
    base_commit: str
    left_behind: RunEntry | None = None
    """The last run of the environment, where a new one begins although that one is not done."""


def which_run(held: Held, config: Config, resume: str | None) -> Start:
    """Return the run that begins or goes on; the workspace is held, so its number is free.

    Args:
        resume: as in `run_session`.

    Raises:
        UserError: the harness is not committed, or there is nothing to resume.
    """
    repository, ledger = held.repository, held.ledger
    if resume is None:
        require_committed(repository, config.environment)
        mine = [entry for entry in ledger.runs() if entry.environment == config.environment]
        last = max(mine, key=_age, default=None)
        left_behind = last if last and last.status is not RunStatus.DONE else None
        return Start(f"{config.environment}-{len(mine) + 1:03d}", repository.head_commit(), left_behind)
    entry = ledger.run(resume) if resume else latest_unfinished(ledger, config.environment)
    return Start(entry.run_id, entry.base_commit)


def latest_unfinished(ledger: Ledger, environment: str | None) -> RunEntry:
    """Return the last run that is not done: of an environment, or (None) of the one whose run began last.

    Raises:
        UserError: all are done, or there is none.
    """
    runs = [entry for entry in ledger.runs() if environment in (None, entry.environment)]
    unfinished = [entry for entry in runs if entry.status is not RunStatus.DONE]
    if not unfinished:
        raise UserError(_nothing_to_resume(environment, len(runs)))
    mine = [entry for entry in unfinished if entry.environment == unfinished[0].environment]
    return max(mine, key=_age)


def _age(entry: RunEntry) -> tuple[int, str]:
    """Return what puts the runs of one environment in their order: their numbers, for clocks are set back."""
    return len(entry.run_id), entry.run_id


def _nothing_to_resume(environment: str | None, done: int) -> str:
    whose, start = (f" of {environment}", f" --env {environment}") if environment else ("", "")
    state = f"all {done} are done" if done > 1 else "the only one is done" if done else "there is none yet"
    return (
        f"no unfinished run{whose} to resume: {state}. `evolve run{start}` starts one; "
        "`evolve runs list` shows the runs of every environment, and `evolve run --resume RUN` goes on with one of them"
    )


def require_committed(repository: Repository, environment: str) -> None:
    """Refuse to begin with a harness that is not there or not committed.

    Raises:
        UserError: names the file or the folder.
    """
    require_unchanged_files(repository, environment)
    require_present(repository, environment)


def require_unchanged_files(repository: Repository, environment: str) -> None:
    """Refuse to begin where a harness has changes that are not committed.

    Raises:
        UserError: names the file.
    """
    folder = harness_folder(environment)
    if changed := repository.changed_paths(folder):
        raise UserError(f"{changed[0]} is not committed; commit or undo your changes in {folder} before a run")


def require_present(repository: Repository, environment: str) -> None:
    """Refuse to begin where no harness is committed.

    Raises:
        UserError: names the folder, and the command that adds it.
    """
    if repository.harness_tree("HEAD", environment) is None:
        command = adding(repository.root, environment)
        raise UserError(f"there is no {harness_folder(environment)} at HEAD; `{command}` adds it")


def deciding(config: Config) -> Json:
    """Return the part of a configuration that decides what a run does; a resumed run must have the same.

    Files stand in it by their whole paths: told again, or told elsewhere, they are the same or they are not.
    """
    return with_whole_paths(config.model_dump(mode="json", exclude=set(FREE_TO_CHANGE)))
