"""The ruler: whatever a run measures with is compared with its start before each stage counts, and at accept.

The environment here is a household whose code and data lie in a folder of the test, so that both can be edited while a
run goes on, as whoever wants better scores would.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import small_run

from evolve.environments.household import create
from evolve.errors import RulerChanged, StoreError
from evolve.loop.accept import take
from evolve.loop.run import Ending
from evolve.models.scripted import ScriptedModel
from evolve.protocols import ModelRequest
from evolve.records import Completion, Decision, ModelFingerprint
from evolve.repository import init_repository, open_repository
from evolve.ruler import changes, measure
from evolve.store import CandidateEntry, Review, RunStatus
from evolve.store.ledger import Ledger
from evolve.workspace import Workspace, starting_files, write_files

PLUGIN = """
import hashlib
from dataclasses import replace
from pathlib import Path

from evolve.environments.household import create as household

FOLDER = Path(__file__).parent


def create(options):
    return Chores(household({"train": 20, "guard": 12, "heldout": 12}), options)


class Chores:
    def __init__(self, inner, options):
        seen = hashlib.sha256()
        for name in ("chores_plugin.py", "prices.json"):
            seen.update((FOLDER / name).read_bytes())
        self.card = replace(inner.card, name="chores", digest=seen.hexdigest())
        self._inner = inner

    def tasks(self, split):
        return self._inner.tasks(split)

    def heldout_tasks(self, look):
        return self._inner.heldout_tasks(look.model_copy(update={"environment": "household"}))

    def heldout_digest(self):
        return self._inner.heldout_digest()

    def open(self, task, trial):
        return self._inner.open(task, trial)
"""
RUN, NAME = "chores-001", "chores-001-01"
SETTINGS = ("environment=chores", "iterations=1", "proposer.kind=handoff")
HINT = '[[system]]\nid = "contract.hint"\ntext = "HINT: act by calls alone."\nevidence = "two tasks"\n'


@pytest.fixture(scope="module")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An installed environment: a module, its data, and what makes it known."""
    folder = tmp_path_factory.mktemp("plugin")
    (folder / "chores_plugin.py").write_text(PLUGIN)
    (folder / "prices.json").write_text('{"mug": 3}')
    known = folder / "chores_plugin-1.dist-info"
    known.mkdir()
    (known / "METADATA").write_text("Metadata-Version: 2.1\nName: chores-plugin\nVersion: 1\n")
    (known / "entry_points.txt").write_text("[evolve.environments]\nchores = chores_plugin:create\n")
    return folder


@pytest.fixture
def data(plugin: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The data file of the environment, as it was pinned."""
    monkeypatch.syspath_prepend(str(plugin))
    (plugin / "prices.json").write_text('{"mug": 3}')
    (plugin / "chores_plugin.py").write_text(PLUGIN)
    return plugin / "prices.json"


@pytest.fixture(scope="module")
def _proposed(tmp_path_factory: pytest.TempPathFactory, plugin: Path) -> Path:
    root = tmp_path_factory.mktemp("proposed") / "ws"
    with init_repository(root) as repository:
        files = starting_files(["chores"])
        write_files(root, files)
        commit = repository.commit_files(None, "", files, message="a workspace", date=small_run.START)
        repository.update_ref(repository.branch(), commit, repository.head_commit())
        repository.git.run("reset", "-q")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(plugin))
        small_run.run(Workspace(root), *SETTINGS)
    edited = Workspace(root).candidate_folder(NAME) / "workspace"
    (edited / "contract.toml").write_text(HINT)
    with Ledger(Workspace(root).ledger_url, is_read_only=True) as ledger:
        pattern = ledger.patterns(RUN, 1)[0].pattern.pattern_id
    proposal = {"hypothesis": "A note tells how to act.", "layer": "contract", "pattern_id": pattern}
    (edited / "proposal.json").write_text(json.dumps(proposal))
    return root


@pytest.fixture
def workspace(_proposed: Path, data: Path, tmp_path: Path) -> Workspace:
    """A run that waited for a candidate, and the edit that makes one."""
    return Workspace(Path(shutil.copytree(_proposed, tmp_path / "ws", symlinks=True)))


def meddling(workspace: Workspace, act: Callable[[], object]) -> ScriptedModel:
    """Return the usual agent; before it first answers in the examination of the candidate, it acts."""
    left = [act]

    def script(request: ModelRequest) -> Completion:
        if left:
            with Ledger(workspace.ledger_url, is_read_only=True) as ledger:
                if ledger.candidates(RUN):
                    left.pop()()
        return small_run.agent(request)

    return small_run.scripted(script)


def candidate(workspace: Workspace) -> CandidateEntry:
    with Ledger(workspace.ledger_url, is_read_only=True) as ledger:
        return ledger.candidate(NAME)


def change(workspace: Workspace, statement: str) -> None:
    with closing(sqlite3.connect(workspace.state / "ledger.sqlite")) as connection, connection:
        assert connection.execute(statement).rowcount == 1


def accept(workspace: Workspace) -> str:
    with open_repository(workspace.root) as repository, Ledger(workspace.ledger_url) as ledger:
        return take(repository, ledger, NAME, date=small_run.START)


def test_a_run_keeps_its_ruler_and_its_commits_name_it(workspace: Workspace, data: Path) -> None:
    """The control: nothing changed, the candidate is judged, taken, and the commit carries the digest of the ruler."""
    ran = small_run.run(workspace, *SETTINGS, resume=RUN)
    assert ran.outcome.ending is Ending.ITERATIONS
    entry = candidate(workspace)
    assert entry.verdict is not None
    assert entry.verdict.decision is Decision.ACCEPT
    with Ledger(workspace.ledger_url, is_read_only=True) as ledger:
        kept = ledger.ruler(RUN)
    assert kept is not None
    assert (kept.record["train"]["count"], kept.record["guard"]["count"]) == (20, 12)
    assert kept.record["model"]["model_id"] == "small"
    commit = accept(workspace)
    with open_repository(workspace.root) as repository:
        assert repository.trailers(commit).ruler == kept.digest


EDITS: dict[str, Callable[[Path], object]] = {
    "the data": lambda data: data.write_text('{"mug": 4}'),
    "the code": lambda data: data.with_name("chores_plugin.py").write_text(PLUGIN + "# kinder\n"),
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS.keys())
def test_a_change_while_a_candidate_is_measured_stops_the_run_unscored(
    workspace: Workspace, data: Path, edit: Callable[[Path], object]
) -> None:
    """Files are read anew, so an edit within a stage is seen; neither that stage nor a verdict is on record."""
    with pytest.raises(RulerChanged, match="the code, the data or the scorer of the environment") as caught:
        small_run.run(workspace, *SETTINGS, resume=RUN, model=meddling(workspace, lambda: edit(data)))
    assert caught.value.exit_code == 2
    entry = candidate(workspace)
    assert (entry.verdict, entry.review) == (None, Review.NONE)
    with Ledger(workspace.ledger_url, is_read_only=True) as ledger:
        assert ledger.run(RUN).status is RunStatus.FAILED
        assert all(stage.outcome == "pass" for stage in ledger.stages(NAME))
        assert "confirmation" not in {stage.stage for stage in ledger.stages(NAME)}


def test_a_resume_with_another_ruler_is_refused_until_it_is_restored(workspace: Workspace, data: Path) -> None:
    """A run goes on only with what it began with; the message names what differs, and restoring it is enough."""
    data.write_text('{"mug": 5}')
    with pytest.raises(RulerChanged, match="no longer measures what it began with"):
        small_run.run(workspace, *SETTINGS, resume=RUN)
    with Ledger(workspace.ledger_url, is_read_only=True) as ledger:
        assert ledger.run(RUN).status is RunStatus.FAILED
    data.write_text('{"mug": 3}')
    assert small_run.run(workspace, *SETTINGS, resume=RUN).entry.status is RunStatus.DONE


@pytest.fixture
def accepted(workspace: Workspace) -> Workspace:
    """A run whose candidate waits for a person."""
    small_run.run(workspace, *SETTINGS, resume=RUN)
    assert candidate(workspace).review is Review.WAITING
    return workspace


def test_accept_compares_the_ruler_too(accepted: Workspace, data: Path) -> None:
    """What changed between verdict and accept refuses it; so does a ruler that was edited, forged or removed."""
    data.write_text('{"mug": 4}')
    with pytest.raises(RulerChanged, match="the code, the data or the scorer"):
        accept(accepted)
    data.write_text('{"mug": 3}')
    change(accepted, "UPDATE rulers SET record = json_set(record, '$.step_limit', 99)")
    with pytest.raises(StoreError, match="not what was written down"):
        accept(accepted)
    change(accepted, "UPDATE rulers SET record = json_set(record, '$.step_limit', 14)")
    change(accepted, "UPDATE runs SET config = json_set(config, '$.gate.max_trials', 2)")
    with pytest.raises(RulerChanged, match=r"gate.max_trials \(was 24, is 2\)"):
        accept(accepted)
    change(accepted, "UPDATE runs SET config = json_set(config, '$.gate.max_trials', 24)")
    copy = accepted.root.with_name("copy")
    shutil.copytree(accepted.root, copy, symlinks=True)
    change(Workspace(copy), "DELETE FROM rulers")
    with pytest.raises(RulerChanged, match="no ruler on record"):
        accept(Workspace(copy))
    assert accept(accepted)


def test_each_part_that_changed_is_named() -> None:
    """Tasks, limits, sampling, gate and strength cap are each part of the ruler, and said with both values."""
    model = ModelFingerprint(model_id="m", endpoint="openai", protocol="tools", sampling={"temperature": 0.7})
    parts: dict[str, Any] = {"model": model, "harness": {"cap": "rewrite"}, "gate": {"policy": "standard"}}
    before = measure(create({}), **parts)
    assert changes(before, measure(create({}), **parts)) == []
    warmer = model.model_copy(update={"sampling": {"temperature": 1.0}})
    others = {
        "the training tasks": measure(create({"train": 5}), **parts),
        "the held-out tasks": measure(create({"heldout": 5}), **parts),
        "model.sampling.temperature (was 0.7, is 1.0)": measure(create({}), **{**parts, "model": warmer}),
        "harness.cap (was 'rewrite', is 'force')": measure(create({}), **{**parts, "harness": {"cap": "force"}}),
        "gate.policy": measure(create({}), **{**parts, "gate": {"policy": "explore"}}),
        "step_limit (was 14, is 99)": before.model_copy(update={"step_limit": 99}),
        "the version of evolve": before.model_copy(update={"evolve": "9"}),
        "the version of the rule API": before.model_copy(update={"rule_api": 9}),
    }
    for words, after in others.items():
        assert any(words in change for change in changes(before, after)), words
        assert after.digest != before.digest
