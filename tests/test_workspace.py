"""The files of a new workspace, and how one is found again."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import tomllib
from pathlib import Path

import pytest
import small_run

from evolve.config import load_config
from evolve.environments.installed import environment_names
from evolve.errors import UserError
from evolve.harness.artifact import read_harness
from evolve.lock import alone_in
from evolve.repository import open_repository
from evolve.workspace import (
    Workspace,
    find_workspace,
    remove_folder,
    seed_harness,
    start_workspace,
    starting_files,
    write_files,
)


def test_a_new_workspace_is_complete(tmp_path: Path) -> None:
    """Configuration, seed harnesses, prompts, traces and what git must not see are there, and the files read."""
    write_files(tmp_path, starting_files(environment_names()))
    assert tomllib.loads((tmp_path / "evolve.toml").read_text())
    load_config(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {
        *("evolve.toml", ".env.example", ".gitignore", "traces", "prompts", "harness_artifacts")
    }
    assert (tmp_path / "prompts" / "brief.md.j2").read_text().strip()
    ignored = (tmp_path / ".gitignore").read_text().split()
    assert any(line.startswith((".evolve", "/.evolve")) for line in ignored)
    assert any(".env" in line for line in ignored)


@pytest.mark.parametrize("names", [[name] for name in environment_names()] + [environment_names()], ids=len)
def test_the_configuration_of_a_new_workspace_reads(names: list[str], tmp_path: Path) -> None:
    """Whatever environments it is begun with: the first is the default, and the lines after it hold."""
    write_files(tmp_path, starting_files(names))
    config = load_config(tmp_path).config
    assert (config.environment, config.iterations) == (names[0], 5)


@pytest.mark.parametrize("name", environment_names())
def test_seed_harnesses_read_and_name_their_environment(name: str) -> None:
    """Each installed environment has a seed that is a valid harness of it."""
    assert read_harness(seed_harness(name)).settings.environment == name


def test_an_environment_without_a_seed_begins_empty() -> None:
    """An environment of somebody else gets the smallest harness there is."""
    harness = read_harness(seed_harness("theirs"))
    assert (harness.settings.environment, list(harness.text_units()), harness.rule_sources) == ("theirs", [], {})


def test_a_folder_that_holds_one_of_the_files_is_left_alone(tmp_path: Path) -> None:
    """Nothing is written where something would be overwritten."""
    (tmp_path / "evolve.toml").write_text("mine")
    with pytest.raises(UserError, match=r"holds evolve\.toml already"):
        write_files(tmp_path, starting_files(["household"]))
    assert [path.name for path in tmp_path.iterdir()] == ["evolve.toml"]
    assert (tmp_path / "evolve.toml").read_text() == "mine"


def test_of_several_that_begin_one_workspace_at_once_one_does(tmp_path: Path) -> None:
    """The others say that it is there already; nothing but the workspace is left."""
    root = tmp_path / "ws"
    command = [sys.executable, "-m", "evolve", "init", str(root), "--env", "household"]
    started = [subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) for _ in "123"]
    said = sorted((process.communicate()[1], process.returncode) for process in started)
    assert sorted(code for _, code in said) == [0, 2, 2], said
    assert [text for text, code in said if code and " already" not in text] == []
    assert [path.name for path in tmp_path.iterdir()] == ["ws"]
    with open_repository(root) as repository:
        assert repository.git.run("status", "--porcelain") == ""


@pytest.mark.parametrize("is_there", [False, True], ids=["appears", "is there"])
def test_a_start_waits_for_the_one_before_it(tmp_path: Path, is_there: bool) -> None:
    """While another makes something there nothing is made; when it is done the start goes on."""
    root = tmp_path / "ws"
    if is_there:
        root.mkdir()
    start = threading.Thread(target=start_workspace, args=(root, ["household"]), kwargs={"date": small_run.START})
    with alone_in(root if is_there else tmp_path):
        start.start()
        start.join(0.3)
        assert not (root / "evolve.toml").exists()
    start.join()
    assert (root / "evolve.toml").is_file()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every folder")
def test_a_folder_that_may_only_be_passed_can_hold_a_workspace(tmp_path: Path) -> None:
    """As /home on a shared machine: a folder of one's own in it is enough."""
    (tmp_path / "mine").mkdir()
    tmp_path.chmod(0o311)
    try:
        assert start_workspace(tmp_path / "mine", ["household"], date=small_run.START)
    finally:
        tmp_path.chmod(0o755)


def test_a_workspace_is_found_from_inside(tmp_path: Path) -> None:
    """Any folder below evolve.toml belongs to the workspace; elsewhere the command that makes one is named."""
    inside = tmp_path / "ws" / "harness_artifacts"
    inside.mkdir(parents=True)
    with pytest.raises(UserError, match="evolve init"):
        find_workspace(inside)
    (tmp_path / "ws" / "evolve.toml").touch()
    assert find_workspace(inside) == Workspace(tmp_path / "ws")


def test_what_evolve_keeps_for_itself_lies_in_one_folder(tmp_path: Path) -> None:
    """Ledger, lock, worktrees, candidates and reports are under .evolve; completions lie with the traces."""
    ws = Workspace(tmp_path)
    kept = (ws.lock_file, ws.worktree("c"), ws.candidate_folder("c"), ws.reports)
    assert all(path.is_relative_to(tmp_path / ".evolve") for path in kept)
    assert ws.ledger_url == f"sqlite:///{tmp_path}/.evolve/ledger.sqlite"
    assert ws.completions("ab" * 32) == tmp_path / "traces" / "completions" / f"{'ab' * 8}.jsonl"


def test_removing_what_is_not_there_is_done(tmp_path: Path) -> None:
    """A scratch folder goes in whatever state it is."""
    (tmp_path / "x" / "y").mkdir(parents=True)
    remove_folder(tmp_path / "x")
    remove_folder(tmp_path / "x")
    assert not (tmp_path / "x").exists()
