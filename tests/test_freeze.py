import subprocess
from datetime import UTC, datetime

import pytest

from evolve.errors import RepositoryError, SealError
from evolve.freeze import freeze_harness, frozen_harness
from evolve.harness.digest import harness_digest
from evolve.repository import freeze, harness_folder, init_repository, land_files
from evolve.store.ledger import Ledger

DATE = datetime(2026, 1, 1, tzinfo=UTC)
FILES = {"harness.toml": b"schema = 1\n", "skills/a.md": b"a\n"}


@pytest.fixture
def repository(tmp_path):
    with init_repository(tmp_path / "ws") as repository:
        land_files(repository, harness_folder("household"), FILES, message="Seed", date=DATE)
        yield repository


@pytest.fixture
def ledger(tmp_path):
    with Ledger(tmp_path / "ledger.db") as ledger:
        yield ledger


def seal(repository, ledger, name="v1", commit="HEAD", **changes):
    settings = {"environment": "household", "manifest": {"model": "m"}, "date": DATE, **changes}
    return freeze_harness(repository, ledger, name=name, commit=commit, **settings)


def test_a_frozen_harness_is_in_git_and_in_the_ledger_under_one_digest(repository, ledger):
    """Tag and ledger give the same record, and freezing again changes nothing."""
    frozen = seal(repository, ledger)
    assert seal(repository, ledger) == frozen
    assert frozen.harness == harness_digest(FILES)
    assert frozen.commit == repository.head_commit()
    assert ledger.freezes("household") == [frozen]
    assert frozen_harness(repository, environment="household", name="v1") == frozen
    assert ledger.open_look(environment="household", frozen_name="v1", harness=frozen.harness, model="m").number == 1


def test_a_freeze_cut_off_between_tag_and_ledger_is_completed_by_freezing_again(repository, ledger, tmp_path):
    """The tag alone does not stand in the way, and the ledger gets its row."""
    with Ledger(tmp_path / "lost.db") as lost:
        frozen = seal(repository, lost)
    assert ledger.freezes() == []
    assert seal(repository, ledger) == frozen
    assert ledger.freezes() == [frozen]


def test_a_name_cannot_be_moved_to_another_harness(repository, ledger):
    """After a change of the harness the old name still means the old one."""
    frozen = seal(repository, ledger)
    land_files(repository, harness_folder("household"), {"harness.toml": b"schema = 2\n"}, message="m", date=DATE)
    with pytest.raises(RepositoryError, match="seals something else"):
        seal(repository, ledger)
    assert frozen_harness(repository, environment="household", name="v1") == frozen


def test_nothing_is_frozen_where_there_is_no_harness(repository, ledger):
    """An environment without a folder, and a commit that does not exist, are errors with a reason."""
    with pytest.raises(RepositoryError, match="no harness for service_desk"):
        seal(repository, ledger, environment="service_desk")
    with pytest.raises(RepositoryError, match="no commit 'nowhere'"):
        seal(repository, ledger, commit="nowhere")


def test_a_tag_moved_by_hand_breaks_the_seal(repository, ledger):
    """A tag with another harness's manifest, or with a manifest of something else, is refused."""
    frozen = seal(repository, ledger)
    land_files(repository, harness_folder("household"), {"harness.toml": b"schema = 2\n"}, message="m", date=DATE)
    subprocess.run(["git", "tag", "-d", frozen.tag], cwd=repository.root, check=True, capture_output=True)
    freeze(repository, "HEAD", frozen.tag, frozen.model_dump(mode="json"), date=DATE)
    with pytest.raises(SealError, match="not the one that was frozen"):
        frozen_harness(repository, environment="household", name="v1")
    freeze(repository, "HEAD", "evolve/household/odd", {"a": 1}, date=DATE)
    with pytest.raises(SealError, match="manifest"):
        frozen_harness(repository, environment="household", name="odd")
