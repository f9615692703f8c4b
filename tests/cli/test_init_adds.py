"""`evolve init` in a workspace that is there adds environments to it, and nothing else."""

import re
import shlex
import shutil
from pathlib import Path

import pytest
from test_init import git

from evolve.cli.exits import run_command
from evolve.errors import UserError
from evolve.loop.beginning import require_committed
from evolve.repository import open_repository


@pytest.fixture(scope="module")
def _desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("made") / "desk"
    assert run_command(["init", str(root), "--env", "service_desk"]) == 0
    return root


@pytest.fixture
def desk(_desk: Path, tmp_path: Path) -> Path:
    """A workspace that was made for service_desk, in a folder with a blank in its name."""
    return Path(shutil.copytree(_desk, tmp_path / "my desk"))


def state(root: Path) -> tuple[str, str, list[Path]]:
    """Return HEAD, what differs from it, and every file and folder but those of git and of the lock."""
    files = [path for path in sorted(root.rglob("*")) if not {".git", ".evolve"} & {*path.parts}]
    return git(root, "rev-parse", "HEAD"), git(root, "status", "--porcelain"), files


def test_missing_environments_are_added_in_one_commit_of_their_own(evolve, desk):
    """Staged and loose changes stay what they are; evolve.toml is not touched; JSON tells what was added."""
    with (desk / "evolve.toml").open("a") as configuration:
        configuration.write("# mine\n")
    (desk / "staged.txt").write_text("s")
    git(desk, "add", "staged.txt")
    (desk / "harness_artifacts/service_desk/harness.toml").write_text("loose")
    before, toml = git(desk, "status", "--porcelain"), (desk / "evolve.toml").read_text()
    head = git(desk, "rev-parse", "HEAD")
    ended = evolve("init", desk, "--env", "service_desk", "--env", "household", "--env", "tau2_retail", "--json")
    assert (ended.code, ended.err) == (0, "")
    assert ended.document == {
        "schema_version": 1,
        "workspace": str(desk),
        "environments": ["service_desk", "household", "tau2_retail"],
        "added": ["household", "tau2_retail"],
        "commit": git(desk, "rev-parse", "HEAD").strip(),
        "recorded": False,
    }
    assert git(desk, "rev-parse", "HEAD^") == head
    changed = {str(Path(path).parent) for path in git(desk, "diff", "--name-only", "HEAD^", "HEAD").split()}
    assert changed == {"harness_artifacts/household", "harness_artifacts/tau2_retail"}
    assert git(desk, "status", "--porcelain") == before
    assert (desk / "evolve.toml").read_text() == toml


def test_environments_that_are_there_are_said_to_be(evolve, desk):
    """Beside new ones that is no error; where nothing is left to add it ends with 2."""
    ended = evolve("init", desk, "--env", "service_desk", "--env", "household")
    assert (ended.code, "Added household" in ended.out, "There already: service_desk" in ended.out) == (0, True, True)
    before = state(desk)
    ended = evolve("init", desk, "--env", "service_desk", "--env", "household")
    assert (ended.code, "has service_desk and household already" in ended.err) == (2, True)
    assert state(desk) == before


@pytest.mark.parametrize("words", [(), ("--env", "household", "--recorded")], ids=["no --env", "--recorded"])
def test_whole_workspace_is_refused_with_the_way_to_add(evolve, desk, words):
    """That it is a workspace is said, and the command that adds an environment to it; nothing changes."""
    before = state(desk)
    ended = evolve("init", desk, *words)
    assert (ended.code, "is a workspace already" in ended.err) == (2, True)
    assert f"`evolve init {shlex.quote(str(desk))} --env NAME`" in ended.err
    assert state(desk) == before


@pytest.mark.parametrize("is_ignored", [False, True], ids=["new to git", "ignored by git"])
def test_harness_that_is_not_committed_is_not_written_over(evolve, desk, is_ignored):
    """What the user began in its place is theirs: it ends with 2, names the file, and adds no other one either."""
    mine = desk / "harness_artifacts/household/harness.toml"
    mine.parent.mkdir()
    mine.write_text("mine")
    (desk / ".git/info/exclude").write_text("household\n" if is_ignored else "")
    before = state(desk)
    ended = evolve("init", desk, "--env", "tau2_retail", "--env", "household")
    told = (
        "harness.toml is there and git ignores it"
        if is_ignored
        else "has uncommitted changes (harness_artifacts/household/harness.toml)"
    )
    assert (ended.code, told in ended.err) == (2, True), ended.err
    assert mine.read_text() == "mine"
    assert state(desk) == before


@pytest.mark.parametrize("is_link", [False, True], ids=["file", "link"])
def test_what_lies_in_place_of_a_folder_is_not_written_over(evolve, desk, is_link):
    """An ignored file or link where the harness folder would be is the user's too."""
    mine = desk / "harness_artifacts/household"
    mine.symlink_to("../nowhere") if is_link else mine.write_text("mine")
    (desk / ".git/info/exclude").write_text("household\n")
    before = state(desk)
    ended = evolve("init", desk, "--env", "household")
    assert (ended.code, "harness_artifacts/household is there and git ignores it" in ended.err) == (2, True), ended.err
    assert (mine.is_symlink(), state(desk)) == (is_link, before)


def test_folder_with_another_evolve_toml_stays_as_it_is(evolve, tmp_path):
    """What is no repository gets no folder of ours: it ends with 2 and what would mend that."""
    (tmp_path / "evolve.toml").write_text("mine")
    ended = evolve("init", tmp_path, "--env", "household")
    assert (ended.code, "`git init`" in ended.err) == (2, True)
    assert [path.name for path in tmp_path.iterdir()] == ["evolve.toml"]


def test_what_a_run_says_is_missing_comes_by_the_command_that_it_names(evolve, desk):
    """Followed to the letter, also where the folder's name holds a blank, the hint lets the run begin."""
    with open_repository(desk) as repository:
        with pytest.raises(UserError, match="no harness_artifacts/household at HEAD") as refused:
            require_committed(repository, "household")
        program, *words = shlex.split(re.findall("`(.+)`", str(refused.value))[0])
        assert (program, evolve(*words).code) == ("evolve", 0)
        require_committed(repository, "household")


def test_what_the_doctor_finds_missing_comes_by_the_command_that_it_names(evolve, desk):
    """The same command stands beside the finding."""
    found = evolve("doctor", "-C", desk, "--set", "environment=household", "--json").document["findings"]
    (mend,) = [one["mend"] for one in found if one["name"] == "repository"]
    assert evolve(*shlex.split(mend)[1:]).code == 0
