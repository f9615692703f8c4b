"""The held-out evaluation: looked at once, on the record, and out of reach of everything else."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest
import small_run

from evolve.assembly import open_ledger
from evolve.environments.household import create
from evolve.errors import InfrastructureError, RepositoryError, SealError
from evolve.evaluate import Evaluation, evaluate, wilson
from evolve.freeze import freeze_harness
from evolve.models.scripted import ScriptedModel
from evolve.progress import Event, Finished
from evolve.protocols import ModelRequest
from evolve.records import Completion, Json, Look, Split
from evolve.repository import open_repository
from evolve.store import Ledger
from evolve.workspace import Workspace

HINT = '[[system]]\nid = "contract.hint"\ntext = "HINT: act by calls alone."\nevidence = "e"\n'
NAME = "v1"


@pytest.fixture(scope="module")
def sealed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with a frozen harness that makes the agent call instead of talk."""
    workspace = small_run.make_workspace(tmp_path_factory.mktemp("sealed") / "ws", {"contract.toml": HINT})
    with open_repository(workspace.root) as repository, open_ledger(workspace, small_run.configured()) as ledger:
        freeze_harness(
            repository,
            ledger,
            environment="household",
            name=NAME,
            commit=repository.head_commit(),
            manifest={},
            date=small_run.START,
        )
    return workspace.root


@pytest.fixture
def workspace(sealed: Path, tmp_path: Path) -> Workspace:
    return Workspace(Path(shutil.copytree(sealed, tmp_path / "ws")))


def look_at(
    workspace: Workspace, *, model: ScriptedModel | None = None, name: str = NAME, progress: object = None
) -> Evaluation:
    """Evaluate in this process."""
    return asyncio.run(
        evaluate(
            workspace,
            small_run.configured("rollout.retries=0"),
            name=name,
            environ=small_run.ENVIRON,
            progress=progress or small_run.Notes(),  # type: ignore[arg-type]
            model=model or small_run.scripted(),
        )
    )


def heldout_ids() -> list[str]:
    look = Look(look_id="x", environment="household", frozen_name="n", harness="h", model="m", opened_at="t", number=1)
    return [task.task_id for task in create({}).heldout_tasks(look)]


def test_base_and_frozen_are_compared_task_by_task(workspace: Workspace) -> None:
    """Both arms play the same tasks; gain, interval, wins and families are those of the pairs."""
    result = look_at(workspace)
    assert (result.base.n, result.frozen.n, result.base.errors) == (12, 12, 0)
    assert result.frozen.successes - result.base.successes == result.wins - result.losses > 0
    assert result.gain == pytest.approx(result.frozen.rate - result.base.rate)
    assert result.interval[0] <= result.gain <= result.interval[1]
    assert result.base.ci95[0] < result.base.rate < result.base.ci95[1]
    assert sum(tasks for tasks, _, _ in result.families.values()) == 12
    assert not result.is_recorded


def test_a_look_stands_in_the_ledger_before_the_first_episode(workspace: Workspace) -> None:
    """Whoever sees a held-out answer has left a trace of looking, even where the evaluation then fails."""
    seen: list[list[Json | None]] = []

    def watching(request: ModelRequest) -> Completion:
        if not seen:
            with Ledger(workspace.ledger_url, is_read_only=True) as ledger:
                seen.append([entry.result for entry in ledger.looks("household")])
        return small_run.solver(request)

    look_at(workspace, model=small_run.scripted(watching))
    assert seen[0] == [None]
    with Ledger(workspace.ledger_url, is_read_only=True) as ledger:
        (entry,) = ledger.looks("household")
    assert entry.result is not None
    assert entry.result["look"]["number"] == 1


def test_a_second_look_is_the_second_and_shows_both(workspace: Workspace) -> None:
    """Each look at the held-out tasks is counted; the model is asked nothing that it was asked before."""
    look_at(workspace)
    idle = small_run.scripted()
    assert look_at(workspace, model=idle).look.number == 2
    assert idle.requests == []
    with Ledger(workspace.ledger_url, is_read_only=True) as ledger:
        assert [entry.look.number for entry in ledger.looks("household")] == [1, 2]


def test_a_look_that_was_cut_off_is_taken_up(workspace: Workspace) -> None:
    """An evaluation that the endpoint ended stays open, and is the same look when it is run again."""
    with pytest.raises(InfrastructureError):
        look_at(workspace, model=small_run.scripted(fails_at=range(10_000)))
    with Ledger(workspace.ledger_url, is_read_only=True) as ledger:
        (cut_off,) = ledger.looks("household")
    assert cut_off.result is None
    result = look_at(workspace)
    assert (result.look.look_id, result.look.number) == (cut_off.look.look_id, 1)


def test_a_name_that_is_not_frozen_opens_no_look(workspace: Workspace) -> None:
    """What fails before the tasks are seen is no look."""
    with pytest.raises(RepositoryError):
        look_at(workspace, name="v2")
    with Ledger(workspace.ledger_url, is_read_only=True) as ledger:
        assert ledger.looks("household") == []


def test_the_loop_cannot_ask_for_held_out_tasks(workspace: Workspace) -> None:
    """The task source of a run refuses the split, and a look for another environment is no key."""
    with pytest.raises(SealError):
        create({}).tasks(Split.HELDOUT)  # type: ignore[arg-type]
    foreign = Look(look_id="x", environment="desk", frozen_name="n", harness="h", model="m", opened_at="t", number=1)
    with pytest.raises(SealError):
        create({}).heldout_tasks(foreign)


def test_nothing_that_a_run_leaves_names_a_held_out_task(workspace: Workspace) -> None:
    """Ledger, traces, completions, evidence, prompts and events of a run hold no held-out id and no canary."""
    notes = small_run.Notes()
    small_run.run(workspace, "iterations=2", progress=notes)
    words = [name.encode() for name in heldout_ids()] + [create({}).card.canary.encode()]
    files = [path for path in workspace.root.rglob("*") if path.is_file() and ".git" not in path.parts]
    assert any(path.name == "brief.md" for path in files)
    assert [path for path in files for word in words if word in path.read_bytes()] == []
    said = repr(notes.events).encode()
    assert [word for word in words if word in said] == []


def test_held_out_episodes_belong_to_their_look_and_to_no_run(workspace: Workspace) -> None:
    """They are on record under the look, apart from training traces, and no run can list them."""
    played: list[str] = []

    class Listener:
        def report(self, event: Event) -> None:
            if isinstance(event, Finished):
                played.append(event.episode.episode_id)

    result = look_at(workspace, progress=Listener())
    with Ledger(workspace.ledger_url, is_read_only=True) as ledger:
        assert {e.episode_id for e in ledger.look_episodes(result.look.look_id)} == set(played)
        assert ledger.runs() == []
    assert {path.parent.name for path in workspace.traces.rglob("*.jsonl")} == {"heldout", "completions"}


def test_the_interval_of_a_rate_is_wilsons() -> None:
    """Known values: 0 and 10 of 10, 50 of 100; nothing measured says nothing."""
    assert wilson(0, 10) == pytest.approx((0.0, 0.27753), abs=1e-5)
    assert wilson(10, 10) == pytest.approx((0.72247, 1.0), abs=1e-5)
    assert wilson(50, 100) == pytest.approx((0.40383, 0.59617), abs=1e-5)
    assert wilson(0, 0) == (0.0, 1.0)
