"""How a run begins and ends: limits, stops, resumes, and what stands in its way."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from pathlib import Path

import pytest
import small_run

from evolve.errors import BudgetSpent, ConfigError, InfrastructureError, Interrupted, UserError, WorkspaceBusy
from evolve.lock import WorkspaceLock
from evolve.loop.run import Ending
from evolve.progress import Event, Finished
from evolve.repository import open_repository
from evolve.store import RunEntry, RunStatus
from evolve.store.ledger import Ledger
from evolve.workspace import Workspace


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_run.make_workspace(tmp_path_factory.mktemp("fresh") / "workspace").root


@pytest.fixture
def workspace(fresh: Path, tmp_path: Path) -> Workspace:
    """A workspace in which nothing happened yet."""
    return Workspace(Path(shutil.copytree(fresh, tmp_path / "workspace")))


def the_run(workspace: Workspace) -> RunEntry:
    with Ledger(workspace.ledger_url, is_read_only=True) as ledger:
        (entry,) = ledger.runs()
        return entry


class StopsAfter:
    """Progress that puts a STOP file down after some episodes."""

    def __init__(self, workspace: Workspace, episodes: int) -> None:
        self._left = episodes
        self._workspace = workspace

    def report(self, event: Event) -> None:
        if isinstance(event, Finished):
            self._left -= 1
            if self._left == 0:
                self._workspace.stop_file.touch()


def test_a_stop_file_ends_a_run_and_resume_goes_on(workspace: Workspace) -> None:
    """STOP ends the run with what was finished on record; resuming plays the rest and no episode twice."""
    slow = small_run.scripted(latency_s=0.05)
    with pytest.raises(Interrupted, match="--resume"):
        small_run.run(workspace, "iterations=1", model=slow, progress=StopsAfter(workspace, 3))
    assert the_run(workspace).status is RunStatus.STOPPED
    model, notes = small_run.scripted(), small_run.Notes()
    ended = small_run.run(workspace, "iterations=1", resume="", model=model, progress=notes)
    assert ended.entry.status is RunStatus.DONE
    assert "removed a STOP file that was left over" in repr(notes.events)
    asked = [(request.messages, request.tools) for request in (*slow.requests, *model.requests)]
    assert all(asked.count(request) == 1 for request in asked)


def test_a_token_budget_ends_a_run_before_it_is_exceeded(workspace: Workspace) -> None:
    """The run stops with BudgetSpent; a larger budget may be given when it is resumed."""
    with pytest.raises(BudgetSpent, match="tokens"):
        small_run.run(workspace, "iterations=1", "budget.tokens=20000")
    with Ledger(workspace.ledger_url, is_read_only=True) as ledger:
        usage = ledger.totals(the_run(workspace).run_id).usage
    assert usage.prompt_tokens + usage.completion_tokens <= 20_000
    assert the_run(workspace).status is RunStatus.STOPPED
    assert small_run.run(workspace, "iterations=1", resume="").entry.status is RunStatus.DONE


def test_a_time_limit_ends_a_run(workspace: Workspace) -> None:
    """The limit is named, and the ledger says that the run was stopped."""
    with pytest.raises(BudgetSpent, match=r"0\.5 s"):
        small_run.run(workspace, "budget.time_limit_s=0.5", model=small_run.scripted(latency_s=0.2))
    assert (the_run(workspace).status, the_run(workspace).finished_at is None) == (RunStatus.STOPPED, False)


def test_a_run_is_resumed_with_its_own_configuration_only(workspace: Workspace) -> None:
    """What decides a run must be the same when it is resumed: the keys that differ are named."""
    with pytest.raises(BudgetSpent):
        small_run.run(workspace, "budget.time_limit_s=0.3", model=small_run.scripted(latency_s=0.2))
    with pytest.raises(UserError, match="gate") as caught:
        small_run.run(workspace, "gate.screen_tasks=3", resume="")
    assert "restore them or start a new run" in str(caught.value)
    with pytest.raises(UserError, match="fingerprint of the model"):
        small_run.run(workspace, resume="", model=small_run.scripted(temperature=0.5))


def test_nothing_to_resume_is_said(workspace: Workspace) -> None:
    """Resuming where no run is unfinished says why, and names the commands that start a run and list runs."""
    with pytest.raises(UserError, match=r"none yet.*`evolve run --env household` starts one.*evolve runs list"):
        small_run.run(workspace, resume="")
    with pytest.raises(UserError, match="no run 'household-009'"):
        small_run.run(workspace, resume="household-009")


def test_two_runs_at_once_are_refused(workspace: Workspace) -> None:
    """While somebody holds the workspace a run does not begin, and says who holds it."""
    with WorkspaceLock(workspace.lock_file), pytest.raises(WorkspaceBusy, match="in use by process"):
        small_run.run(workspace)


def test_uncommitted_changes_of_the_harness_are_named(workspace: Workspace) -> None:
    """A run begins from a commit: edits that are not in one stop it."""
    (workspace.root / "harness_artifacts" / "household" / "harness.toml").write_text("schema_version = 1\n")
    with pytest.raises(UserError, match=r"harness\.toml is not committed"):
        small_run.run(workspace)


def test_an_environment_without_a_harness_is_named(workspace: Workspace) -> None:
    """A workspace that was made for another environment cannot evolve this one."""
    with pytest.raises(UserError, match="there is no harness_artifacts/service_desk at HEAD"):
        small_run.run(workspace, "environment=service_desk")


def test_a_folder_that_is_no_repository_is_said_so(tmp_path: Path) -> None:
    """A run outside of a repository is the user's error."""
    with pytest.raises(UserError, match="repository"):
        small_run.run(Workspace(tmp_path))


def test_an_endpoint_that_fails_stops_the_run_and_scores_nothing(workspace: Workspace) -> None:
    """A model that cannot be asked is not a model that fails tasks: the run ends as failed, without a candidate."""
    broken = small_run.scripted(fails_at=range(10_000))
    with pytest.raises(InfrastructureError, match="could not be played"):
        small_run.run(workspace, "rollout.retries=0", model=broken)
    assert the_run(workspace).status is RunStatus.FAILED
    with Ledger(workspace.ledger_url, is_read_only=True) as ledger:
        assert ledger.candidates() == []
        assert {e.score for e in ledger.episodes(the_run(workspace).run_id)} == {None}


def test_a_run_in_which_everything_is_solved_ends_at_once(workspace: Workspace) -> None:
    """Without a failure there is nothing to propose on."""
    told = small_run.scripted(small_run.solver)
    ran = small_run.run(workspace, model=told)
    assert (ran.outcome.ending, ran.entry.status) == (Ending.ALL_SOLVED, RunStatus.DONE)


def test_the_start_of_a_run_can_be_pinned(workspace: Workspace) -> None:
    """SOURCE_DATE_EPOCH is the time that the ledger and the commits carry; nonsense in it is refused."""
    small_run.run(workspace, model=small_run.scripted(small_run.solver))
    assert the_run(workspace).started_at == small_run.START.isoformat()
    with pytest.raises(ConfigError, match="SOURCE_DATE_EPOCH"):
        small_run.run(workspace, environ={"SOURCE_DATE_EPOCH": "yesterday"})


def test_what_a_killed_run_left_half_made_is_made_anew(workspace: Workspace) -> None:
    """A half-exported candidate folder and a half-made worktree of a killed run stand in nobody's way."""
    with pytest.raises(BudgetSpent):
        small_run.run(workspace, "iterations=1", "budget.time_limit_s=0.3", model=small_run.scripted(latency_s=0.2))
    debris = workspace.candidate_folder("household-001-01") / "workspace" / "harness.toml"
    debris.parent.mkdir(parents=True)
    debris.write_text("torn")
    tree = workspace.worktree("household-001-01")
    with open_repository(workspace.root) as repository:
        repository.git.run("worktree", "add", "--detach", "--quiet", str(tree), "HEAD")
    (tree / "harness_artifacts" / "household" / "harness.toml").unlink()
    assert small_run.run(workspace, "iterations=1", resume="").entry.status is RunStatus.DONE
    assert not tree.exists()


@pytest.mark.parametrize("is_ignored", [False, True])
def test_a_terminal_that_is_closed_ends_a_run_unless_that_is_ignored(workspace: Workspace, is_ignored: bool) -> None:
    """It is asked to stop as by Ctrl-C; under nohup it goes on."""
    from evolve.loop.stopping import stop_signals

    async def story() -> bool:
        async with stop_signals(workspace, small_run.Notes()) as stop:
            os.kill(os.getpid(), signal.SIGHUP)
            await asyncio.sleep(0.05)
            return stop.is_set()

    before = signal.signal(signal.SIGHUP, signal.SIG_IGN if is_ignored else signal.SIG_DFL)
    try:
        assert asyncio.run(story()) is not is_ignored
    finally:
        signal.signal(signal.SIGHUP, before)


def test_the_signals_are_those_of_the_caller_again_afterwards(workspace: Workspace) -> None:
    """A run leaves no handler of its own behind."""
    from evolve.loop.stopping import stop_signals

    def handlers() -> list[object]:
        return [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]

    async def story() -> None:
        before = handlers()
        async with stop_signals(workspace, notes) as stop:
            assert before[0] != handlers()[0]
            workspace.stop_file.touch()
            await asyncio.wait_for(stop.wait(), 5)
            assert before[0] == handlers()[0], "Ctrl-C ends at once now"
        assert before == handlers()

    notes = small_run.Notes()
    asyncio.run(story())
    assert [event.text.partition(":")[0] for event in notes.events] == ["stopping"]
