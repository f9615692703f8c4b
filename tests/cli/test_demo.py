"""The demo, from the recordings that the package ships."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from evolve.config import load_config
from evolve.demonstration.settings import demo_config, demo_settings
from evolve.workspace import Workspace


@dataclass(frozen=True)
class Played:
    """A demo that has ended: its workspace, its document, what it said on the way."""

    workspace: Path
    document: Any
    said: str


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    """Run the demo as the README does."""
    into = tmp_path_factory.mktemp("demo") / "demo"
    command = [sys.executable, "-m", "evolve", "demo", "--json", "--into", str(into)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return Played(into, json.loads(ended.stdout), ended.stderr)


def git(root: Path, *words: str) -> str:
    return subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=True).stdout


def test_the_demo_replays_a_real_model_to_the_published_numbers(played: Played) -> None:
    """Without a model, a key or a network, the demo comes to the held-out numbers and verdicts of docs/results.md."""
    found = played.document["environments"]
    assert {
        name: (one["base"]["successes"], one["frozen"]["successes"], one["base"]["n"]) for name, one in found.items()
    } == {
        "household": (0, 3, 12),
        "service_desk": (3, 9, 34),
    }
    assert {name: one["candidates"] for name, one in found.items()} == {
        "household": {"accepted": 1, "rejected": 0, "cannot_tell": 0},
        "service_desk": {"accepted": 1, "rejected": 1, "cannot_tell": 0},
    }


def test_the_demo_says_that_it_is_recorded_and_of_which_model(played: Played) -> None:
    """Whoever sees the demo, its document or its page sees that no model was asked."""
    assert played.document["recorded"] is True
    assert played.document["model"].startswith("qwen2.5-coder-1.5b")
    for one in played.document["environments"].values():
        assert "RECORDED" in Path(one["report_html"]).read_text("utf-8").upper()
    assert "RECORDED" in played.said


@pytest.mark.parametrize("environment", ["household", "service_desk"])
def test_the_demo_leaves_a_workspace_that_git_can_read(played: Played, environment: str) -> None:
    """An accepted candidate is a commit with its evidence in trailers, and the frozen version an annotated tag."""
    log = git(played.workspace, "log", "-1", "--format=%B", "--", f"harness_artifacts/{environment}")
    assert "Evolve-Verdict: accept" in log
    assert git(played.workspace, "cat-file", "-t", f"evolve/{environment}/demo").strip() == "tag"


def test_the_demo_can_be_done_step_by_step(played: Played, evolve, tmp_path: Path) -> None:
    """`init --recorded` makes a workspace whose run is the demo's; the demo's own one has its settings beside it."""
    into = tmp_path / "steps"
    assert evolve("init", into, "--recorded", "--env", "service_desk").code == 0
    assert "(recorded)" in evolve("plan", "-C", into).out
    assert evolve("run", "-C", into, "--iterations", "1").code == 0
    shown = evolve("runs", "show", "-C", into)
    assert "answered by a recording" in shown.out
    first, demo = (
        evolve("candidates", "list", "-C", root, "--run", "service_desk-001", "--json").document["candidates"][0]
        for root in (into, played.workspace)
    )
    assert first == demo
    settings = ("-C", played.workspace, "--config", played.workspace / "service_desk.toml")
    assert evolve("freeze", "service_desk", "--name", "again", *settings).code == 0


def test_another_model_than_the_recorded_one_is_refused_before_anything_is_written(played: Played, evolve) -> None:
    """Neither a run nor a look at held-out tasks begins under the name of a model that was not recorded."""
    options = ("-C", played.workspace, "--config", played.workspace / "service_desk.toml", "--set", "model.id=large")
    told = "model.id is 'large', and service_desk.jsonl.xz is a recording of"
    before = [evolve(noun, "list", "-C", played.workspace).out for noun in ("runs", "candidates")]
    for command in (("run",), ("evaluate", "demo"), ("evaluate", "demo", "--dry-run")):
        ended = evolve(*command, *options)
        assert (ended.code, told in ended.err) == (2, True)
    assert told in evolve("plan", *options).out
    assert [evolve(noun, "list", "-C", played.workspace).out for noun in ("runs", "candidates")] == before
    looks = evolve("evaluate", "demo", *options[:-2], "--dry-run", "--json").document["looks"]
    assert len(looks) == 1


@pytest.mark.parametrize("environment", ["household", "service_desk"])
def test_the_settings_of_the_demo_begin_with_what_they_are(tmp_path: Path, environment: str) -> None:
    """The comment stands first, then the version of the form and the environment; they read as the demo's do."""
    text = demo_settings(environment)
    (tmp_path / "evolve.toml").write_text(text)
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert text.startswith(f"# What `evolve demo` runs on {environment}.")
    assert lines[:2] == ["schema_version = 1", f'environment = "{environment}"']
    mine = load_config(tmp_path).config
    assert mine == demo_config(Workspace(tmp_path), environment, model_path=None, environ={}).config
    (tmp_path / "evolve.toml").unlink()
    assert mine == demo_config(Workspace(tmp_path), environment, model_path=None, environ={}).config


def test_a_demo_that_was_stopped_goes_on_as_a_run(played: Played, evolve, tmp_path: Path) -> None:
    """Ctrl-C says how, and the run needs none of the demo's settings again to come to the same candidate.

    With --accept it is told as what it is then: a commit on the branch.
    """
    into = tmp_path / "demo"
    command = [sys.executable, "-m", "evolve", "demo", "--into", str(into)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    while process.poll() is None and not (into / "traces/household/train").exists():
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)
    said = process.communicate()[1]
    assert (process.returncode, f"`evolve run --resume -C {into}`" in said) == (130, True), said
    resumed = evolve("run", "--resume", "-C", into, "--accept", "--json").document
    assert [one["review"] for one in resumed["candidates"]] == ["taken"]
    assert resumed["candidates"][0]["taken_commit"] == git(into, "rev-parse", "HEAD").strip()
    listed = [evolve("candidates", "list", "-C", root, "--json") for root in (into, played.workspace)]
    one, other = (ended.document["candidates"][0] for ended in listed)
    assert (one["state"], one["effect"], one["hypothesis"]) == ("accepted", other["effect"], other["hypothesis"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--recorded",), "name it with --env"),
        (("--recorded", "--env", "tau2_telecom"), "no recording of tau2_telecom"),
    ],
)
def test_only_what_was_recorded_can_be_had_recorded(evolve, tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    """One environment, and one that a recording comes with; else no workspace is made."""
    ended = evolve("init", tmp_path / "w", *words)
    assert (ended.code, (tmp_path / "w").exists()) == (2, False)
    assert said in ended.err
    ended = evolve("doctor", "-C", tmp_path, "--set", "model.kind=recorded", "--set", "model.recording=shipped:no")
    assert "Traceback" not in ended.err


@pytest.mark.parametrize(
    ("flags", "words"), [((), "--model goes with --live"), (("--live",), "absent.gguf, and there is no such file")]
)
def test_a_model_that_cannot_be_asked_is_told_before_anything_is_made(evolve, tmp_path: Path, flags, words) -> None:
    """A model without --live is not passed over in silence, and a missing file is named; no workspace is made."""
    ended = evolve("demo", "--model", tmp_path / "absent.gguf", "--into", tmp_path / "demo", *flags)
    assert (ended.code, ended.out) == (2, "")
    assert words in " ".join(ended.err.split())
    assert not (tmp_path / "demo").exists()
