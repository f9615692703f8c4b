"""The state of a workspace."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import suppress

from evolve.config import Config
from evolve.disk import in_words
from evolve.doctor.finding import Finding
from evolve.doctor.refusals import warnings
from evolve.errors import EvolveError, WorkspaceBusy
from evolve.holding import read_ledger
from evolve.lock import WorkspaceLock
from evolve.repository import harness_folder
from evolve.store import RunStatus
from evolve.workspace import Workspace


def workspace_state(workspace: Workspace, config: Config | None, told: Collection[str]) -> Iterator[Finding]:
    """Look at the repository, the ledger, the lock and what a run left behind.

    Args:
        config: None where it does not read; only what does not depend on it is looked at.
        told: names of findings of which a run's refusal tells already.
    """
    if config is not None and "repository" not in told:
        detail = f"{workspace.root}, {harness_folder(config.environment)} is clean"
        yield Finding(name="repository", status="ok", detail=detail)
        for text in warnings(workspace, config):
            yield Finding(name="harness.off", status="warn", detail=text, mend="mend the name, or leave it out")
    if config is not None and "ledger" not in told:
        with suppress(EvolveError):  # of the repository, which is told
            yield _ledger(workspace, config)
    yield _lock(workspace)
    if workspace.stop_file.exists():
        detail = f"{workspace.stop_file} is left over; the next run removes it"
        yield Finding(name="stop file", status="warn", detail=detail)


def _ledger(workspace: Workspace, config: Config) -> Finding:
    with read_ledger(workspace, config) as ledger:
        runs = ledger.runs() if ledger else []
    if ledger is None:
        return Finding(name="ledger", status="ok", detail="no runs yet")
    open_runs = [run.run_id for run in runs if run.status is not RunStatus.DONE]
    number = "1 run" if len(runs) == 1 else f"{len(runs)} runs"
    detail = number + (f", not done: {', '.join(open_runs)}" if open_runs else "")
    mend = f"evolve run --resume {open_runs[0]}" if open_runs else ""
    return Finding(name="ledger", status="warn" if open_runs else "ok", detail=detail, mend=mend)


def _lock(workspace: Workspace) -> Finding:
    if not workspace.lock_file.exists():
        return Finding(name="lock", status="ok", detail="free")
    try:
        with WorkspaceLock(workspace.lock_file, wait_s=0.0):
            return Finding(name="lock", status="ok", detail="free")
    except WorkspaceBusy as error:
        return Finding(name="lock", status="warn", detail=str(error))
    except OSError as error:
        detail = f"{workspace.lock_file}: {in_words(error)}"
        return Finding(name="lock", status="missing", detail=detail, blocks=True)
