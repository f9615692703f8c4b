"""The held-out evaluation: looked at once, on the record, and out of reach of everything else."""

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import small_run

from evolve.cli.evaluation_text import evaluation_text
from evolve.environments.household import create
from evolve.errors import CanaryFound, InfrastructureError, RepositoryError, SealError
from evolve.evaluate import evaluate
from evolve.freeze import freeze_harness
from evolve.holding import open_ledger
from evolve.models.scripted import ScriptedModel, reply_text
from evolve.progress import Event, Finished, Said
from evolve.protocols import ModelRequest
from evolve.rates import wilson
from evolve.records import Completion, Evaluation, Json, Look, Split, digest_of
from evolve.repository import look_ref, open_repository, write_mark
from evolve.seal import mark_look
from evolve.store.ledger import Ledger
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
    workspace: Workspace,
    *assignments: str,
    model: ScriptedModel | None = None,
    name: str = NAME,
    progress: object = None,
    tell: Callable[[Evaluation], None] | None = None,
) -> Evaluation:
    """Evaluate in this process."""
    return asyncio.run(
        evaluate(
            workspace,
            small_run.configured("rollout.retries=0", *assignments),
            name=name,
            environ=small_run.ENVIRON,
            progress=progress or small_run.Notes(),  # type: ignore[arg-type]
            model=model or small_run.scripted(),
            tell=tell,
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


def test_a_look_that_was_cut_off_is_not_gone_on_with_under_other_switches(workspace: Workspace) -> None:
    """Whoever has seen how it goes, stops, and switches something of the harness has made another look."""
    with pytest.raises(InfrastructureError):
        look_at(workspace, model=small_run.scripted(fails_at=range(60, 10_000)))
    with Ledger(workspace.ledger_url, is_read_only=True) as ledger:
        (cut_off,) = ledger.looks("household")
        assert len({row.harness for row in ledger.look_episodes(cut_off.look.look_id)}) == 2, "both arms were begun"
    assert look_at(workspace, "harness.cap=note").look.number == 2


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


def looks(workspace: Workspace) -> int:
    with Ledger(workspace.ledger_url, is_read_only=True) as ledger:
        return len(ledger.looks("household"))


def change(workspace: Workspace, *statements: str) -> None:
    with closing(sqlite3.connect(workspace.state / "ledger.sqlite")) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def frozen_again(workspace: Workspace, name: str, manifest: Json) -> None:
    """Freeze what is committed."""
    with open_repository(workspace.root) as repository, open_ledger(workspace, small_run.configured()) as ledger:
        commit = repository.head_commit()
        settings = {"environment": "household", "name": name, "commit": commit, "date": small_run.START}
        freeze_harness(repository, ledger, manifest=manifest, **settings)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def _looked(sealed: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = Path(shutil.copytree(sealed, tmp_path_factory.mktemp("looked") / "ws"))
    look_at(Workspace(root))
    return root


@pytest.fixture
def looked(_looked: Path, tmp_path: Path) -> Workspace:
    """A workspace in which one look was made."""
    return Workspace(Path(shutil.copytree(_looked, tmp_path / "ws")))


def test_a_repeated_look_says_so(looked: Workspace) -> None:
    """The second look with the same harness is warned of while it begins, and its result carries the warning."""
    notes = small_run.Notes()
    second = look_at(looked, progress=notes)
    (warning,) = second.warnings
    assert "look 2 at the held-out tasks of household with the same harness" in warning
    assert Said(warning, "warning") in notes.events
    assert "warning: this is look 2" in evaluation_text(second, [])
    with Ledger(looked.ledger_url, is_read_only=True) as ledger:
        first, repeated = (entry.result or {} for entry in ledger.looks("household"))
    assert (first["warnings"], repeated["warnings"]) == ([], [warning])


def test_a_look_that_nobody_was_told_of_is_told_and_not_repeated(looked: Workspace) -> None:
    """Killed after the ledger had its result and before git knew of it, it is the same look when it is run again."""
    with open_repository(looked.root) as repository, Ledger(looked.ledger_url) as ledger:
        (entry,) = ledger.looks("household")
        (made,) = ledger.commitments("household")
        mark_look(repository, entry.look, made.digest)  # as it was before the kill
    idle = small_run.scripted()
    assert look_at(looked, model=idle).model_dump(mode="json") == entry.result
    assert (idle.requests, looks(looked)) == ([], 1)
    assert look_at(looked, model=idle).look.number == 2, "git knows the result now"


def test_a_look_counts_as_told_once_it_was_shown(looked: Workspace) -> None:
    """Cut off while the result is being shown, the same result is shown again, as the same look, without a request."""

    def cut_off(_: Evaluation) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        look_at(looked, tell=cut_off)
    shown: list[Evaluation] = []
    idle = small_run.scripted()
    assert look_at(looked, model=idle, tell=shown.append) == shown[0]
    assert (shown[0].look.number, idle.requests, looks(looked)) == (2, [], 2)
    assert look_at(looked, model=idle).look.number == 3, "what was shown is over"


@pytest.mark.parametrize(("record", "error"), [({}, SealError), ([1], RepositoryError)])
def test_a_mark_that_is_none_is_told_in_words(looked: Workspace, record: Any, error: type[Exception]) -> None:
    """Whoever can write to git can put anything under a mark's name; that is refused like any other disagreement."""
    with open_repository(looked.root) as repository:
        write_mark(repository, look_ref("look-0009"), record)
    with pytest.raises(error, match="look-0009"):
        look_at(looked)


def test_an_evaluation_names_the_commitment_that_it_was_made_under(looked: Workspace) -> None:
    """The digest of the held-out tasks stands in the ledger, in the result, and in what people read."""
    with Ledger(looked.ledger_url, is_read_only=True) as ledger:
        (made,) = ledger.commitments("household")
        (entry,) = ledger.looks("household")
    assert made.digest == create(made.options).heldout_digest()
    assert entry.result is not None
    assert entry.result["heldout_commitment"] == made.digest
    assert made.digest in evaluation_text(Evaluation.model_validate(entry.result), [])


FORGERIES = {
    "looks removed with the end of their chain": ("DELETE FROM looks", "DELETE FROM ledger_info WHERE key LIKE 'end%'"),
    "a commitment edited": ("UPDATE commitments SET digest = '" + "0" * 64 + "'",),
    "a commitment removed": ("DELETE FROM commitments",),
    "a look edited": ("UPDATE looks SET number = 2",),
    "a freeze edited": ("UPDATE freezes SET record = json_set(record, '$.manifest.origin', 'elsewhere')",),
    "a freeze removed": ("DELETE FROM freezes",),
}


@pytest.mark.parametrize("statements", FORGERIES.values(), ids=FORGERIES.keys())
def test_a_forged_ledger_gets_no_look(looked: Workspace, statements: tuple[str, ...]) -> None:
    """Whoever edits the ledger to make a further look a first one is refused; the model is asked nothing."""
    change(looked, *statements)
    idle = small_run.scripted()
    with pytest.raises(SealError):
        look_at(looked, model=idle)
    assert idle.requests == []


def test_a_chain_of_looks_that_was_forged_as_a_whole_meets_what_git_remembers(looked: Workspace) -> None:
    """Digests are no secret: a result can be edited with all of them. Git has the digest of the result it had."""
    with closing(sqlite3.connect(looked.state / "ledger.sqlite")) as connection, connection:
        connection.row_factory = sqlite3.Row
        row = dict(connection.execute("SELECT * FROM looks WHERE kind = 'close'").fetchone())
        row["result"] = {**json.loads(row["result"]), "gain": 0.99}
        digest = digest_of({name: value for name, value in row.items() if name != "digest"})
        flattered = (json.dumps(row["result"]), digest)
        connection.execute("UPDATE looks SET result = ?, digest = ? WHERE kind = 'close'", flattered)
        connection.execute("UPDATE ledger_info SET value = ? WHERE key = 'end_of_looks'", (digest,))
    assert looks(looked) == 1, "the chain itself holds"
    with pytest.raises(SealError, match="git remembers look-0000"):
        look_at(looked)


def test_a_deleted_ledger_does_not_make_the_next_look_the_first(looked: Workspace) -> None:
    """Freezing anew fills the row in, and still nothing is evaluated: git remembers the look."""
    for path in looked.state.glob("ledger.sqlite*"):
        path.unlink()
    with pytest.raises(SealError, match="deleted, replaced or altered"):
        look_at(looked)
    frozen_again(looked, NAME, {})
    with pytest.raises(SealError, match="git remembers look-0000"):
        look_at(looked)
    assert looks(looked) == 0


CHANGED: dict[str, Json] = {
    "frozen without the held-out tasks": {"heldout_commitment": None},
    "held-out tasks": {"heldout_commitment": "0" * 64},
    "the environment": {"environment": {"digest": "0" * 64}},
}


@pytest.mark.parametrize("manifest", CHANGED.values(), ids=CHANGED.keys())
def test_what_changed_since_the_freeze_gets_no_look(workspace: Workspace, manifest: Json) -> None:
    """A version is evaluated on the held-out tasks and under the rules that it was frozen with, or not at all."""
    frozen_again(workspace, "v2", manifest)
    with pytest.raises(SealError, match="under a new name"):
        look_at(workspace, name="v2")
    assert looks(workspace) == 0


def test_other_held_out_tasks_cannot_be_chosen_after_a_look(looked: Workspace) -> None:
    """Whoever has seen a result may not look at a smaller, luckier part of the tasks."""
    config = small_run.configured("environments.household={train=20,guard=12,heldout=6}")
    with pytest.raises(SealError, match="looked at already"):
        asyncio.run(
            evaluate(
                looked,
                config,
                name=NAME,
                environ=small_run.ENVIRON,
                progress=small_run.Notes(),
                model=small_run.scripted(),
            )
        )
    assert looks(looked) == 1


def test_gold_that_comes_out_in_a_held_out_episode_ends_the_evaluation(workspace: Workspace) -> None:
    """An episode with the canary of the gold is not scored and not written; the look stays open."""
    canary = create({}).card.canary
    with pytest.raises(CanaryFound):
        look_at(workspace, model=small_run.scripted(lambda _: reply_text(f"it is {canary}")))
    with Ledger(workspace.ledger_url, is_read_only=True) as ledger:
        (entry,) = ledger.looks("household")
    assert entry.result is None
