"""The pages in docs/ against the code: what they take from it, what they list, and the examples that they give."""

import asyncio
import importlib.util
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from test_architecture import LAYERS, PACKAGE

from evolve.agent import play
from evolve.assembly import ENVIRONMENT_GROUP, environment_names, make_environment
from evolve.cli.app import NOUNS, VERBS
from evolve.errors import ConfigError, SealError
from evolve.harness.artifact import NOTE_CHARACTERS, SKILL_WORDS, read_harness
from evolve.harness.check import check_files
from evolve.harness.lint_code import MAX_BYTES, MAX_LINES
from evolve.harness.runtime import HarnessRuntime
from evolve.harness.worker import WorkerPool
from evolve.models.cache import CachedModel, CompletionCache
from evolve.models.scripted import ScriptedModel, reply_call, reply_text
from evolve.models.settings import ModelSettings
from evolve.protocols import Environment, ModelRequest, Session
from evolve.records import Call, Completion, Episode, ErrorKind, Layer, Look, Split, Strength

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
FILE_BLOCK = re.compile(r"^`([\w./-]+)`\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#\s]+)(#[^)\s]*)?\)")


def load(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


GENERATE = load("generate", DOCS / "generate.py")


def page(name: str) -> str:
    return (DOCS / name).read_text("utf-8")


def files_of(name: str) -> dict[str, str]:
    """Return the files that a page shows: a line with the name in backticks, then a block of code."""
    return dict(FILE_BLOCK.findall(page(name)))


def first_column(text: str, head: str) -> list[str]:
    """Return the names in backticks of the first column of the table that begins with `head`."""
    rows = text.partition(f"| {head} |")[2].split("\n\n")[0].splitlines()[2:]
    return [row.split("|")[1].strip().strip("`") for row in rows]


def pages() -> list[Path]:
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]


@pytest.mark.parametrize("path", GENERATE.pages(), ids=lambda path: path.name)
def test_generated_parts_are_what_the_code_says(path: Path) -> None:
    """Command line, configuration, harness limits and rule API are up to date, apart from where lines break."""
    assert path.read_text("utf-8").split() == GENERATE.expected(path).split(), "run `make docs`"


def test_every_generated_part_is_used_once() -> None:
    """Nothing is generated that no page shows."""
    found = [name for path in GENERATE.pages() for _, name, _ in GENERATE.BLOCK.findall(path.read_text("utf-8"))]
    assert sorted(found) == sorted(GENERATE.PARTS)


def test_meanings_are_given_only_where_the_code_gives_none() -> None:
    """A key is described in one place: its field, or the generator's list."""
    described = {
        *(f"model.{name}" for name, field in ModelSettings.model_fields.items() if field.description),
        *(
            f"{section}.{name}"
            for section, outer in GENERATE.Config.model_fields.items()
            if (inner := GENERATE._section(outer)) is not None
            for name, field in inner.model_fields.items()
            if field.description
        ),
    }
    assert not described & set(GENERATE.MEANINGS)


@pytest.mark.parametrize("name", [*(verb.__name__ for verb in VERBS), *NOUNS])
def test_every_command_is_in_the_readme(name: str) -> None:
    """The README's table of commands names each verb and each noun."""
    table = (ROOT / "README.md").read_text("utf-8").partition("## Commands")[2].partition("## ")[0]
    assert re.search(rf"`(evolve )?{name}\b", table)


@pytest.mark.parametrize("path", pages(), ids=lambda path: path.name)
def test_links_lead_somewhere(path: Path) -> None:
    """Each link to a file of the repository finds it."""
    targets = [target for target, _ in LINK.findall(path.read_text("utf-8")) if "://" not in target]
    assert [target for target in targets if not (path.parent / target).exists()] == []


def test_layers_are_those_that_the_imports_are_held_to() -> None:
    """The table of layers, and the picture, name every declared module in its layer, topmost first."""
    rows = re.findall(r"^\| (\d+) \| ([^|]+) \|", page("architecture.md"), re.MULTILINE)
    shown = {int(rank): set(re.findall(r"`([\w.]+)`", names)) for rank, names in rows}
    declared = {rank: {name for name in names if is_there(name)} for rank, names in enumerate(LAYERS)}
    assert shown == declared
    picture = page("architecture.svg")
    bands = re.findall(r'class="rank"[^>]*>(\d+)<(.*?)</g>', picture, re.DOTALL)
    assert {int(rank): set(re.findall(r'class="name"[^>]*>([\w.]+)<', band)) for rank, band in bands} == declared


def is_there(name: str) -> bool:
    path = PACKAGE / name.replace(".", "/")
    return path.is_dir() or path.with_suffix(".py").is_file()


def test_error_kinds_are_all_explained() -> None:
    """The table of error kinds has those of the records, in their order."""
    assert first_column(page("environments.md"), "error kind") == [kind.value for kind in ErrorKind]


def test_strengths_are_all_explained() -> None:
    """The ladder has the strengths of the records, weakest first."""
    assert first_column(page("harness.md"), "strength") == [strength.value for strength in Strength]


@pytest.mark.parametrize(("protocol", "title"), [(Environment, "Environment"), (Session, "Session")])
def test_members_of_the_protocols_are_all_explained(protocol: type, title: str) -> None:
    """The tables of the contract have each member of the interfaces, in their order."""
    members = [name for name in vars(protocol) if not name.startswith("_")]
    shown = first_column(page("environments.md").partition(f"**{title}**")[2], "member")
    assert [name.partition("(")[0] for name in shown] == members


def test_limits_of_texts_and_code_are_those_that_hold() -> None:
    """The sizes that the harness page names are the ones that are enforced."""
    said = f"at most {NOTE_CHARACTERS} characters, a skill at most {SKILL_WORDS} words, a rule file at most "
    assert f"{said}{MAX_LINES} lines and {MAX_BYTES // 1024} KiB" in page("harness.md")


def test_kinds_of_models_are_all_explained() -> None:
    """The table of models has every kind that can be configured."""
    shown = first_column(page("configuration.md"), "`model.kind`")
    assert shown == list(ModelSettings.model_fields["kind"].annotation.__args__)


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
    return reply_call("hand_over", tag=f"#{int(tag[2:])}") if tag else reply_text("")
