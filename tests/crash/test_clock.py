"""A clock that was set back misleads nobody."""

from __future__ import annotations

import os
import time
from datetime import timedelta
from pathlib import Path

import pytest
import small_run

from evolve.errors import BudgetSpent
from evolve.lock import WorkspaceLock
from evolve.repository import candidate_ref, init_repository, remove_stale_locks
from evolve.store.ledger import Ledger


def test_a_lock_from_the_future_is_stale(tmp_path: Path) -> None:
    """A ref that was left locked before the clock was set back can be written again."""
    with init_repository(tmp_path / "ws") as repository:
        left = repository.git.common_folder / f"{candidate_ref('c1')}.lock"
        left.parent.mkdir(parents=True)
        left.touch()
        os.utime(left, (time.time() + 3600, time.time() + 3600))
        with WorkspaceLock(tmp_path / "lock") as lock:
            assert remove_stale_locks(repository, lock) == [left]


def test_the_latest_run_is_the_one_of_the_highest_number(tmp_path: Path) -> None:
    """Resuming goes on with the newest run also where the clock says that it began first."""
    workspace = small_run.make_workspace(tmp_path)
    for days, resume in ((0, None), (-1, None), (1, "")):
        moment = int((small_run.START + timedelta(days=days)).timestamp())
        with pytest.raises(BudgetSpent):
            small_run.run(workspace, "budget.tokens=1", resume=resume, environ={"SOURCE_DATE_EPOCH": str(moment)})
    with Ledger(workspace.ledger_url, is_read_only=True) as ledger:
        ended = {entry.run_id: entry.finished_at for entry in ledger.runs()}
    assert ended["household-002"] == (small_run.START + timedelta(days=1)).isoformat()
    assert ended["household-001"] == small_run.START.isoformat()
