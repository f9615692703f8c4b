import os
import time
from datetime import UTC, datetime

import pytest

from evolve.errors import RepositoryError, WorkspaceBusy
from evolve.lock import WorkspaceLock
from evolve.repository import candidate_ref, init_repository, land_files, remove_stale_locks

DATE = datetime(2026, 1, 1, tzinfo=UTC)
HOUR_AGO = time.time() - 3600


@pytest.fixture
def repository(tmp_path):
    with init_repository(tmp_path / "ws") as repository:
        yield repository


def old_file(path, age=HOUR_AGO, content=""):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    os.utime(path, (age, age))
    return path


def test_a_stale_lock_on_our_own_ref_is_removed(repository, tmp_path):
    """A candidate's ref that a killed git left locked can be written after the clean-up."""
    ref = candidate_ref("c1")
    stale = old_file(repository.git.common_folder / f"{ref}.lock")
    with pytest.raises(RepositoryError, match="lock"):
        repository.update_ref(ref, repository.head_commit(), None)
    with WorkspaceLock(tmp_path / "lock") as lock:
        assert remove_stale_locks(repository, lock) == [stale]
    repository.update_ref(ref, repository.head_commit(), None)
    assert repository.resolve(ref) == repository.head_commit()


def test_a_lock_of_the_user_is_left_alone(repository, tmp_path):
    """An index.lock without an unfinished landing belongs to the user's git, and accept says what is in the way."""
    theirs = old_file(repository.git.folder / "index.lock")
    with WorkspaceLock(tmp_path / "lock") as lock:
        assert remove_stale_locks(repository, lock) == []
    with pytest.raises(RepositoryError, match=r"index\.lock"):
        land_files(repository, "harness_artifacts/x", {"a": b""}, message="m", date=DATE)
    assert theirs.exists()
    assert repository.resolve("HEAD^") is None  # the branch did not move
    theirs.unlink()
    land_files(repository, "harness_artifacts/x", {"a": b""}, message="m", date=DATE)
    assert repository.changed_paths() == []


def test_the_index_lock_of_a_killed_landing_is_removed(repository, tmp_path):
    """A landing killed inside git leaves index.lock; with its note as evidence the lock goes."""
    old_file(repository.git.folder / "evolve-landing", HOUR_AGO - 5, repository.head_commit())
    stale = old_file(repository.git.folder / "index.lock")
    with WorkspaceLock(tmp_path / "lock") as lock:
        assert remove_stale_locks(repository, lock) == [stale]


def test_a_lock_younger_than_the_workspace_lock_is_left_alone(repository, tmp_path):
    """Whoever made it may still be alive."""
    with WorkspaceLock(tmp_path / "lock") as lock:
        young = old_file(repository.git.common_folder / f"{candidate_ref('c1')}.lock", time.time() + 5)
        assert remove_stale_locks(repository, lock) == []
    assert young.exists()


def test_nothing_is_removed_without_the_workspace_lock(repository, tmp_path):
    """Without the lock nobody can know whether a lock file has an owner."""
    with pytest.raises(WorkspaceBusy):
        remove_stale_locks(repository, WorkspaceLock(tmp_path / "lock"))
