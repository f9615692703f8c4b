"""A run that was killed: what the listings say of it, and what a new run says."""

import os
import signal
import subprocess
import sys
import time

import pytest

HANGING_RULE = """
from evolve.rules import PASS, action_rule

@action_rule(id="action.slow", strength="block", evidence="a test")
def slow(view, memory):
    while True:
        pass
"""


@pytest.fixture
def process(workspace):
    """A run that gets nowhere, under way."""
    (workspace / "harness_artifacts/household/action.py").write_text(HANGING_RULE)
    for words in (("add", "harness_artifacts"), ("commit", "-qm", "a rule")):
        subprocess.run(["git", "-c", "user.name=u", "-c", "user.email=u@x", *words], cwd=workspace, check=True)
    command = [sys.executable, "-m", "evolve", "run", "-C", str(workspace), "--config", str(workspace / "my.toml")]
    limits = ["--set", "harness.call_timeout_s=60", "--iterations", "1"]
    with subprocess.Popen([*command, *limits], stderr=subprocess.PIPE, start_new_session=True) as process:
        for line in process.stderr or ():
            if b"held-out tasks" in line:
                break
        yield process
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)


def test_a_killed_run_is_interrupted_and_a_new_one_says_that_it_is_not_done(evolve, workspace, process):
    """On record a killed run still goes on; that nobody holds its workspace tells it from one that does."""
    while not (before := next(iter(evolve("runs", "list", "-C", workspace, "--json").document["runs"]), None)):
        assert process.poll() is None
        time.sleep(0.02)
    assert (before["status"], before["is_interrupted"]) == ("running", False)
    assert evolve("runs", "show", "-C", workspace).out.startswith("Run household-001 on household: running\n")
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    (after,) = evolve("runs", "list", "-C", workspace, "--json").document["runs"]
    assert after == {**before, "is_interrupted": True}
    assert "household-001  household    interrupted" in evolve("runs", "list", "-C", workspace).out
    shown = evolve("runs", "show", "-C", workspace)
    assert shown.out.startswith("Run household-001 on household: interrupted\n")
    assert "evolve run --resume household-001" in shown.out
    refused = evolve("run", "-C", workspace, "--config", workspace / "my.toml", "--budget-tokens", "1")
    assert refused.code == 5
    assert "household-001 is not done; this begins household-002. To go on with household-001" in refused.err
    runs = evolve("runs", "list", "-C", workspace, "--json").document["runs"]
    assert {run["run_id"]: run["is_interrupted"] for run in runs} == {"household-001": True, "household-002": False}
