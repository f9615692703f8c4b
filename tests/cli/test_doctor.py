"""The doctor says what is there, what is missing, and the command that mends it."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from accepted import add_accepted

from evolve.lock import WorkspaceLock
from evolve.workspace import Workspace


def findings(ended) -> dict:
    return {finding["name"]: finding for finding in ended.document["findings"]}


def test_ready_workspace_ends_with_0(evolve, workspace):
    """With a model that needs no key nothing blocks a run."""
    ended = evolve("doctor", "-C", workspace, "--config", workspace / "my.toml", "--json")
    assert ended.code == 0
    found = findings(ended)
    assert found["python"]["status"] == "ok"
    assert found["git"]["status"] == "ok"
    assert found["environment household"]["status"] == "ok"
    assert found["rule isolation"]["status"] in ("ok", "warn")
    assert found["ledger"]["detail"] == "no runs yet"
    assert all(found[name]["mend"] for name in found if found[name]["status"] == "missing")


def test_missing_key_dirty_harness_and_unfinished_business_are_found(evolve, workspace):
    """A missing key and an uncommitted harness block a run and end with 2; each has what mends it."""
    (workspace / "harness_artifacts/household/harness.toml").write_text("x")
    add_accepted(workspace)
    (workspace / "STOP").touch()
    ended = evolve("doctor", "-C", workspace, "--set", "model.id=m", "--json")
    assert ended.code == 2
    found = findings(ended)
    assert found["model m"]["blocks"]
    assert "OPENAI_API_KEY" in found["model m"]["mend"]
    assert "no key for https://api.openai.com/v1" in found["model m"]["detail"]
    assert found["repository"]["blocks"]
    assert found["stop file"]["status"] == "warn"
    assert found["ledger"]["detail"] == "1 run"


def test_a_table_of_an_environment_that_is_not_installed_is_told(evolve, workspace):
    """A misspelt [environments.NAME] changes nothing, so it is a warning of its own."""
    ended = evolve("doctor", "-C", workspace, "--set", "environments.houshold.train=3", "--json")
    found = findings(ended)["environment houshold"]
    assert (found["status"], found["blocks"]) == ("warn", False)
    assert "no environment of that name" in found["detail"]


def test_unreachable_model_is_missing(evolve, workspace, monkeypatch):
    """A configured endpoint that does not answer blocks a run; --offline does not ask it."""
    monkeypatch.setenv("OPENAI_API_KEY", "x" * 20)
    options = ("-C", workspace, "--set", "model.id=m", "--set", "model.base_url=http://127.0.0.1:9/v1", "--json")
    asked = findings(evolve("doctor", *options))["model m"]
    assert asked["blocks"]
    assert "cannot be reached" in asked["detail"]
    assert findings(evolve("doctor", *options, "--offline"))["model m"]["status"] == "ok"


def test_wrong_configuration_is_a_finding_beside_the_others(evolve, workspace):
    """A malformed evolve.toml does not keep the doctor from looking at the rest."""
    (workspace / "evolve.toml").write_text("nonsense = 1")
    ended = evolve("doctor", "-C", workspace, "--json")
    assert ended.code == 2
    assert "nonsense" in findings(ended)["configuration"]["detail"]
    assert findings(ended)["git"]["status"] == "ok"


def test_held_lock_is_told_with_its_holder(evolve, workspace):
    """Another process at work is a warning that names it."""
    with WorkspaceLock(Workspace(workspace).lock_file):
        found = findings(evolve("doctor", "-C", workspace, "--config", workspace / "my.toml", "--json"))
    assert found["lock"]["status"] == "warn"
    assert "process" in found["lock"]["detail"]


def test_outside_a_workspace_the_machine_is_looked_at(evolve, tmp_path, monkeypatch):
    """Without a workspace the doctor looks at what it can, and names `evolve init`."""
    monkeypatch.chdir(tmp_path)
    found = findings(evolve("doctor", "--offline", "--json"))
    assert found["workspace"]["mend"] == "evolve init PATH"
    assert "agent codex" in found
    people = evolve("doctor", "--offline").out
    assert "→ evolve init PATH" in people


GIT = ("-c", "user.name=u", "-c", "user.email=u@x")


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (["proposer.kind=command"], ["proposer.agent is empty"]),
        (["proposer.kind=command", "proposer.agent=nope"], ["proposer.agent is 'nope'"]),
        (["proposer.kind=openai"], ["proposer.model is not set"]),
        (["proposer.kind=openai", "proposer.model.id="], ["no key for", "under proposer.model: model.id is empty"]),
        (["model.kind=openai"], ["no key for", "model.id is empty"]),
        (["ledger.url=sqlite://"], ["in memory"]),
        (["model.kind=recorded", "model.recording=shipped:household", "model.id=m"], ["is a recording of"]),
        (["environment=nowhere"], ["there is no environment 'nowhere'", "there is no harness_artifacts/nowhere"]),
    ],
)
def test_what_a_run_refuses_for_is_found_once_and_counted(evolve, workspace, wrong, words):
    """A doctor that says "ready" where a run refuses helps nobody: it tells the refusals of a run, each once."""
    options = [part for one in wrong for part in ("--set", one)]
    options = ["-C", workspace, "--config", workspace / "my.toml", *options]
    ended = evolve("doctor", *options, "--json")
    assert ended.code == 2
    told = [finding["detail"] for finding in ended.document["findings"] if finding["blocks"]]
    assert [word in detail for word, detail in zip(words, told, strict=True)] == [True] * len(words)
    number = "1 thing" if len(words) == 1 else f"{len(words)} things"
    assert f"{number} must be mended before a run" in evolve("doctor", *options).out
    assert any(word in evolve("run", *options).err for word in words)


def test_a_ledger_that_lacks_what_git_shows_is_found(evolve, workspace):
    """A run that finds the ledger removed makes no new one that passes: doctor and plan refuse as the next run does."""
    config = ("-C", workspace, "--config", workspace / "my.toml")
    assert evolve("run", *config, "--iterations", "1").code == 0
    subprocess.run(["git", *GIT, "branch", "-f", "evolve/household-002"], cwd=workspace, check=True)
    refused = evolve("run", *config)
    assert "which the ledger does not know" in refused.err
    ended = evolve("doctor", *config, "--json")
    told = [finding["detail"] for finding in ended.document["findings"] if finding["blocks"]]
    assert (ended.code, told) == (2, [refused.err.removeprefix("evolve: ").strip()])
    assert evolve("plan", *config, "--json").document["refusals"] == told


def test_a_file_that_a_run_would_make_its_ledger_is_not_missed(evolve, workspace):
    """Before the first run there is none, wherever it shall be: nothing to mend, and a plan can be made."""
    url = f"ledger.url=sqlite:///{workspace / 'mine.sqlite'}"
    config = ("-C", workspace, "--config", workspace / "my.toml", "--set", url)
    assert findings(evolve("doctor", *config, "--json"))["ledger"]["detail"] == "no runs yet"
    assert evolve("plan", *config, "--json").document["refusals"] == []
    assert evolve("run", *config, "--iterations", "1").code == 0
    assert findings(evolve("doctor", *config, "--json"))["ledger"]["detail"] == "1 run"


def test_a_removed_state_folder_is_found(evolve, played):
    """It was found, and is found too once a run has refused for it."""
    config = ("-C", played, "--config", played / "my.toml")
    subprocess.run(["git", *GIT, "branch", "-f", "evolve/household-001"], cwd=played, check=True)
    shutil.rmtree(played / ".evolve")
    for _ in range(2):
        ended = evolve("doctor", *config, "--json")
        told = [finding["detail"] for finding in ended.document["findings"] if finding["blocks"]]
        assert (ended.code, len(told), "the ledger was deleted" in told[0]) == (2, 1, True)
        assert evolve("run", *config).code == 2


RULE = """
from evolve.rules import PASS, action_rule

@action_rule(id="action.idle", strength="block", evidence="a test")
def idle(view, memory):
    return PASS
"""


def test_a_unit_that_the_harness_has_not_is_warned_of(evolve, workspace):
    """It switches nothing off: a run says so at its start, and so do plan and doctor; it is no refusal."""
    (workspace / "harness_artifacts/household/action.py").write_text(RULE)
    for words in (("add", "harness_artifacts"), ("commit", "-qm", "a rule")):
        subprocess.run(["git", *GIT, *words], cwd=workspace, check=True)
    options = ["-C", workspace, "--config", workspace / "my.toml"]
    options += ["--set", 'harness.off=["contract", "action.idle", "skill.gone"]']
    folder = "harness_artifacts/household"
    told = f"harness.off names skill.gone, which is no unit of {folder} at HEAD; there are: action.idle"
    doctor = evolve("doctor", *options, "--json")
    assert (doctor.code, findings(doctor)["harness.off"]["detail"]) == (0, told)
    assert f"warning: {told}\n" in evolve("plan", *options).out
    ran = evolve("run", *options, "--iterations", "1")
    assert (ran.code, ran.err.count("harness.off"), f"warning: {told}\n" in ran.err) == (0, 1, True)


def test_a_unit_that_the_frozen_harness_has_not_is_warned_of(evolve, workspace):
    """What counts is the version that is looked at, whatever is committed since; the look is taken all the same."""
    options = ["-C", workspace, "--config", workspace / "my.toml"]
    assert evolve("freeze", "household", "--name", "v1", *options).code == 0
    (workspace / "harness_artifacts/household/action.py").write_text(RULE)
    for words in (("add", "harness_artifacts"), ("commit", "-qm", "a rule")):
        subprocess.run(["git", *GIT, *words], cwd=workspace, check=True)
    evaluate = ["evaluate", "v1", *options, "--set", 'harness.off=["contract", "action.idle"]']
    told = "harness.off names action.idle, which is no unit of harness_artifacts/household at v1; there is none"
    assert evolve(*evaluate, "--dry-run", "--json").document["warnings"] == [told]
    assert evolve(*evaluate, "--dry-run").out.endswith(f"warning: {told}\n")
    looked = evolve(*evaluate)
    assert (looked.code, looked.err.count("harness.off"), f"warning: {told}\n" in looked.err) == (0, 1, True)


def test_a_file_of_agents_that_nothing_needs_is_a_warning(evolve, workspace):
    """It does not keep a run from beginning, nor the doctor from looking at the rest."""
    config = ("-C", workspace, "--config", workspace / "my.toml")
    ended = evolve("doctor", *config, "--set", "proposer.agents_file=x", "--json")
    found = findings(ended)["agents"]
    assert (ended.code, found["status"], f"names {Path.cwd() / 'x'}" in found["detail"]) == (0, "warn", True)


def test_an_agent_without_key_and_login_is_a_warning(evolve, tmp_path, monkeypatch):
    """Its program alone makes no patch: the doctor says so before a run has played its tasks."""
    program = tmp_path / "codex"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    for name, value in {"HOME": str(tmp_path), "CODEX_API_KEY": "", "CODEX_HOME": "", "OPENAI_API_KEY": ""}.items():
        monkeypatch.setenv(name, value)
    without = findings(evolve("doctor", "--offline", "--json"))["agent codex"]
    assert (without["status"], "CODEX_API_KEY" in without["mend"]) == ("warn", True)
    monkeypatch.setenv("CODEX_API_KEY", "k" * 20)
    assert findings(evolve("doctor", "--offline", "--json"))["agent codex"]["status"] == "ok"
