"""The state of a workspace."""

from __future__ import annotations

from collections.abc import Iterator

from evolve.assembly import open_ledger
from evolve.config import Config
from evolve.doctor.finding import Finding
from evolve.doctor.ready import require_harness
from evolve.errors import EvolveError, HarnessError, WorkspaceBusy
from evolve.lock import WorkspaceLock
from evolve.repository import harness_folder, open_repository
from evolve.seal import require_unused
from evolve.store import RunStatus
from evolve.workspace import Workspace, adding


def workspace_state(workspace: Workspace, config: Config) -> Iterator[Finding]:
    """Look at the repository, the ledger, the lock and what a run left behind."""
    yield _repository(workspace, config)
    yield _ledger(workspace, config)
    yield _lock(workspace)
    if workspace.stop_file.exists():
        detail = f"{workspace.stop_file} is left over; the next run removes it"
        yield Finding(name="stop file", status="warn", detail=detail)


def _repository(workspace: Workspace, config: Config) -> Finding:
    folder = harness_folder(config.environment)
    try:
        with open_repository(workspace.root) as repository:
            changed = repository.changed_paths(folder)
            has_harness = repository.harness_tree("HEAD", config.environment) is not None
        require_harness(workspace, config.environment)
    except HarnessError as error:
        mend = f"mend the file, then `evolve harness check {folder}`, then commit"
        return Finding(name="repository", status="missing", detail=str(error), mend=mend, blocks=True)
    except EvolveError as error:
        return Finding(name="repository", status="missing", detail=str(error), blocks=True)
    if changed:
        detail, mend = f"{changed[0]} is not committed", f"git add {folder} && git commit, or undo the changes"
        return Finding(name="repository", status="missing", detail=detail, mend=mend, blocks=True)
    if not has_harness:
        mend = adding(workspace.root, config.environment)
        return Finding(name="repository", status="missing", detail=f"no {folder} at HEAD", mend=mend, blocks=True)
    return Finding(name="repository", status="ok", detail=f"{workspace.root}, {folder} is clean")


def _ledger(workspace: Workspace, config: Config) -> Finding:
    try:
        if not config.ledger.url and not workspace.has_ledger:
            with open_repository(workspace.root) as repository:
                require_unused(repository)
            return Finding(name="ledger", status="ok", detail="no runs yet")
        with open_ledger(workspace, config, is_read_only=True) as ledger:
            runs = ledger.runs()
    except EvolveError as error:
        return Finding(name="ledger", status="missing", detail=str(error), blocks=True)
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
