"""A run that was killed: what the listings say of it, and what a new run says."""

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

from evolve.lock import WorkspaceLock

HANGING_RULE = """
from evolve.rules import PASS, action_rule

@action_rule(id="action.slow", strength="block", evidence="a test")
def slow(view, memory):
    while True:
        pass
"""


@contextmanager
def under_way(workspace):
    """Give a run that gets nowhere."""
    command = [sys.executable, "-m", "evolve", "run", "-C", str(workspace), "--config", str(workspace / "my.toml")]
    limits = ["--set", "harness.call_timeout_s=60", "--iterations", "1"]
    with subprocess.Popen([*command, *limits], stderr=subprocess.DEVNULL, start_new_session=True) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def listed(evolve, workspace):
    runs = evolve("runs", "list", "-C", workspace, "--json").document["runs"]
    return {run["run_id"]: (run["status"], run["is_interrupted"]) for run in runs}


def wait_for(run_id, evolve, workspace, process):
    for _ in range(1500):
        assert process.poll() is None
        if run_id in (found := listed(evolve, workspace)):
            return found
        time.sleep(0.02)
    raise AssertionError(found)


def test_a_killed_run_is_interrupted_also_while_another_one_goes_on(evolve, workspace):
    """On record a killed run still goes on; who holds the workspace says which run it plays."""
    (workspace / "harness_artifacts/household/action.py").write_text(HANGING_RULE)
    for words in (("add", "harness_artifacts"), ("commit", "-qm", "a rule")):
        subprocess.run(["git", "-c", "user.name=u", "-c", "user.email=u@x", *words], cwd=workspace, check=True)
    with under_way(workspace) as process:
        assert wait_for("household-001", evolve, workspace, process) == {"household-001": ("running", False)}
        assert evolve("runs", "show", "-C", workspace).out.startswith("Run household-001 on household: running\n")
    assert listed(evolve, workspace) == {"household-001": ("running", True)}
    assert "household-001  household    interrupted" in evolve("runs", "list", "-C", workspace).out
    assert "  status         interrupted\n" in evolve("report", "-C", workspace).out
    shown = evolve("runs", "show", "-C", workspace)
    assert shown.out.startswith("Run household-001 on household: interrupted\n")
    assert "evolve run --resume household-001" in shown.out
    with WorkspaceLock(workspace / ".evolve" / "lock"):  # as `evolve accept` does
        assert listed(evolve, workspace) == {"household-001": ("running", True)}
    with under_way(workspace) as process:
        now = wait_for("household-002", evolve, workspace, process)
        assert now == {"household-001": ("running", True), "household-002": ("running", False)}


def test_a_new_run_says_that_the_one_before_is_not_done(evolve, workspace):
    """It begins all the same, for that may be what was meant."""
    words = ("run", "-C", workspace, "--config", workspace / "my.toml", "--budget-tokens", "1")
    assert "is not done" not in evolve(*words).err
    again = evolve(*words).err
    assert "household-001 is not done; this begins household-002. To go on with household-001: stop" in again
