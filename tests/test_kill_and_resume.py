"""A run that is killed again and again comes to the same end as one that nobody disturbed.

Kills in each transition of the list are in crash/; here they strike at random moments of the clock.
"""

from __future__ import annotations

import signal
from multiprocessing.context import ForkServerContext
from pathlib import Path
from random import Random

import forked
import pytest
import small_run

from evolve.records import Json
from evolve.repository import open_repository, run_branch
from evolve.store import RunStatus
from evolve.store.ledger import Ledger
from evolve.workspace import Workspace

KILLS = 20
SEED = 20_260_102
OVERHEAD_S = 0.15
"""What starting, and reaching the first row, take; a kill before that disturbs nothing."""


@pytest.fixture(scope="module")
def processes() -> ForkServerContext:
    return forked.processes()


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Json:
    """What a run leaves behind that nobody kills."""
    workspace = small_run.make_workspace(tmp_path_factory.mktemp("undisturbed"))
    assert small_run.run(workspace, "iterations=2").entry.status is RunStatus.DONE
    return remains(workspace)


def go_on(root: Path) -> None:
    """Start the run, or resume it; in a process of its own."""
    workspace = Workspace(root)
    has_begun = (workspace.state / "ledger.sqlite").exists() and bool(runs_of(workspace))
    small_run.run(workspace, "iterations=2", resume="" if has_begun else None)


def runs_of(workspace: Workspace) -> list[str]:
    with Ledger(workspace.ledger_url, is_read_only=True) as ledger:
        return [entry.run_id for entry in ledger.runs()]


def remains(workspace: Workspace) -> Json:
    """Return all that a run decided and counted: what depends on the clock or the place of a line is left out."""
    (run_id,) = runs_of(workspace)
    with Ledger(workspace.ledger_url, is_read_only=True) as ledger, open_repository(workspace.root) as repository:
        episodes = ledger.episodes(run_id)
        passing = {"wall_s", "recorded_at", "trace_offset"}
        return {
            "status": ledger.run(run_id).status,
            "totals": ledger.totals(run_id).model_dump(),
            "episodes": [episode.model_dump(exclude=passing) for episode in episodes],
            "patterns": [entry.model_dump() for entry in ledger.patterns(run_id)],
            "stages": {e.candidate.number: ledger.stages(e.candidate.candidate_id) for e in ledger.candidates()},
            "candidates": [entry.model_dump() for entry in ledger.candidates(run_id)],
            "verdicts": [e.verdict.evidence_digest for e in ledger.candidates(run_id) if e.verdict],
            "guard_uses": ledger.guard_uses("household"),
            "commits": repository.git.run("log", "--format=%H %T%n%B", run_branch(run_id)),
            "refs": repository.git.run("for-each-ref", "--format=%(refname) %(objectname)"),
            "worktrees": repository.git.run("worktree", "list", "--porcelain").count("worktree "),
        }


def test_an_undisturbed_run_accepts_one_candidate_and_rejects_another(undisturbed: Json) -> None:
    """The run that the others are compared with has something to lose: an accepted and a rejected candidate."""
    assert [entry["state"] for entry in undisturbed["candidates"]] == ["rejected", "accepted"]
    assert "Evolve-Verdict: accept" in undisturbed["commits"]
    assert undisturbed["totals"]["requests_asked"] > 0


def test_kills_at_random_moments_change_nothing(
    processes: ForkServerContext, undisturbed: Json, tmp_path: Path
) -> None:
    """Twenty kills at random moments, each followed by a resume, lead to the same commits, verdicts and totals."""
    random, roots = Random(SEED), (tmp_path / str(number) for number in range(KILLS))
    kills, root = 0, next(roots)
    small_run.make_workspace(root)
    longest = 1.2
    while kills < KILLS:
        if survives(processes, root, random.uniform(OVERHEAD_S, longest)):
            assert remains(Workspace(root)) == undisturbed
            root = next(roots)
            small_run.make_workspace(root)
        else:
            kills += 1
    assert survives(processes, root, None)
    assert remains(Workspace(root)) == undisturbed


def survives(processes: ForkServerContext, root: Path, lifetime_s: float | None) -> bool:
    """Let the run go on for some time, then kill it; return whether it came to its end before."""
    process = processes.Process(target=go_on, args=(root,))
    process.start()
    process.join(lifetime_s)
    process.kill()
    process.join()
    assert process.exitcode in (0, -signal.SIGKILL)
    return process.exitcode == 0
