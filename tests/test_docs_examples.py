"""The examples of docs/ as a reader would use them: an environment to install, a harness that mends a model in it."""

import asyncio
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evolve.agent import play
from evolve.environments.installed import ENVIRONMENT_GROUP, environment_names, make_environment
from evolve.errors import ConfigError, SealError
from evolve.harness.artifact import read_harness
from evolve.harness.check import check_files
from evolve.harness.runtime import HarnessRuntime
from evolve.harness.worker import WorkerPool
from evolve.models.cache import CompletionCache
from evolve.models.cached import CachedModel
from evolve.models.scripted import ScriptedModel, reply_call
from evolve.protocols import Environment, ModelRequest
from evolve.records import Call, Completion, Episode, ErrorKind, Layer, Look, Split

DOCS = Path(__file__).parent.parent / "docs"
FILE_BLOCK = re.compile(r"^`([\w./-]+)`\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def files_of(name: str) -> dict[str, str]:
    """Return the files that a page shows: a line with the name in backticks, then a block of code."""
    return dict(FILE_BLOCK.findall((DOCS / name).read_text("utf-8")))


@pytest.fixture
def coat_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Environment]:
    """Install the environment of the page, as `pip install .` would, and make it by its name."""
    shown = files_of("environments.md")
    points = tomllib.loads(shown["pyproject.toml"])["project"]["entry-points"]
    (tmp_path / "coat_check.py").write_text(shown["coat_check.py"], "utf-8")
    installed = tmp_path / "coat_check-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: coat-check\nVersion: 1.0\n")
    lines = [f"[{ENVIRONMENT_GROUP}]", *(f"{name} = {target}" for name, target in points[ENVIRONMENT_GROUP].items())]
    (installed / "entry_points.txt").write_text("\n".join(lines))
    monkeypatch.syspath_prepend(tmp_path)
    assert "coat_check" in environment_names()
    yield make_environment("coat_check", {})
    sys.modules.pop("coat_check", None)


def test_the_example_environment_is_short() -> None:
    """A complete environment takes fewer than 100 lines."""
    assert len(files_of("environments.md")["coat_check.py"].splitlines()) < 100


def test_the_example_environment_keeps_its_seal(coat_check: Environment) -> None:
    """Held-out tasks come against a look for this environment, and share no id with the others."""
    look = Look(look_id="l", environment="coat_check", frozen_name="v", harness="h", model="m", opened_at="", number=1)
    loop_ids = {task.task_id for split in (Split.TRAIN, Split.GUARD) for task in coat_check.tasks(split)}
    assert not loop_ids & {task.task_id for task in coat_check.heldout_tasks(look)}
    with pytest.raises(SealError):
        coat_check.tasks(Split.HELDOUT)  # type: ignore[arg-type]
    with pytest.raises(SealError):
        coat_check.heldout_tasks(look.model_copy(update={"environment": "household"}))
    with pytest.raises(ConfigError):
        make_environment("coat_check", {"size": 3})


def test_the_example_environment_answers_mistakes_with_error_kinds(coat_check: Environment) -> None:
    """What an agent does wrong is an observation with a kind, and a probe changes nothing."""
    session = coat_check.open(coat_check.tasks(Split.TRAIN)[0], 0)
    calls = [Call(tool="dance", arguments={}), Call(tool="hand_over", arguments={}), call_for("#3"), call_for("3")]
    kinds = [session.step(call).error_kind for call in calls]
    assert kinds == [ErrorKind.UNKNOWN_TOOL, ErrorKind.INVALID_ARGS, ErrorKind.REJECTED, ErrorKind.REJECTED]
    tag = session.probe(Call(tool="list_coats", arguments={})).text[:4]
    assert session.probe(call_for(tag)).error_kind is ErrorKind.REJECTED
    assert session.say("hello").error_kind is ErrorKind.MALFORMED_CALL
    assert session.score().value == 0.0


def call_for(tag: str) -> Call:
    return Call(tool="hand_over", arguments={"tag": tag})


def test_the_example_harness_is_fine_and_mends_the_example_environment(coat_check: Environment, tmp_path: Path) -> None:
    """A model that writes #3 for T-03 solves no task with the harness off and every task with it on."""
    files = {path: text.encode() for path, text in files_of("harness.md").items()}
    assert check_files(files) == []
    off = asyncio.run(play_all(coat_check, None, tmp_path / "off.jsonl"))
    on = asyncio.run(play_all(coat_check, files, tmp_path / "on.jsonl"))
    assert [sum(episode.is_success for episode in episodes) for episodes in (off, on)] == [0, 12]
    fired = {(firing.unit, firing.effect) for episode in on for firing in episode.firings}
    assert fired == {
        ("contract.one-coat", "note"),
        ("contract.tag-form", "note"),
        ("skill.find-the-tag", "note"),
        ("action.tag-form", "probe"),
        ("action.tag-form", "rewrite"),
    }
    assert {firing.layer for episode in on for firing in episode.firings} < set(Layer)


def test_the_example_trajectory_rule_speaks_once(coat_check: Environment, tmp_path: Path) -> None:
    """With the action layer off, a repeated refusal draws one note in an episode."""
    files = {path: text.encode() for path, text in files_of("harness.md").items()}
    episodes = asyncio.run(play_all(coat_check, files, tmp_path / "notes.jsonl", off=frozenset({"action"})))
    for episode in episodes:
        assert [f.step for f in episode.firings if f.unit == "trajectory.refused-again"] == [2]
        assert episode.stop == "step_limit"


async def play_all(
    environment: Environment, files: Any, cache_file: Path, *, off: frozenset[str] = frozenset()
) -> list[Episode]:
    with CompletionCache(cache_file) as cache:
        model = CachedModel(ScriptedModel(careless), cache)
        async with WorkerPool(minimum_tier="rlimits") as pool:
            runtime = HarnessRuntime(read_harness(files) if files else None, pool, off=off)
            tasks = environment.tasks(Split.TRAIN)
            return [await play(environment, task, 0, model=model, runtime=runtime) for task in tasks]


def careless(request: ModelRequest) -> Completion:
    """List the coats once, then ask for the right one by its number alone."""
    listed = next((m["content"] for m in request.messages if m["role"] == "tool"), None)
    if listed is None:
        return reply_call("list_coats")
    colour = next(m["content"] for m in request.messages if m["role"] == "user").split()[3]
    tag = next(row.split()[0] for row in listed.split(", ") if row.endswith(f" {colour}"))
    return reply_call("hand_over", tag=f"#{int(tag[2:])}")
