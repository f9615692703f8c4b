"""Docs against the code: commands have help, --json, a file and a place in the README; pages say what the code says."""

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from test_architecture import LAYERS, PACKAGE

from evolve.cli.app import NOUNS, VERBS, command
from evolve.cli.codes import DONE, OUR_BUG
from evolve.errors import EvolveError
from evolve.harness.artifact import NOTE_CHARACTERS, SKILL_WORDS
from evolve.harness.lint_code import MAX_BYTES, MAX_LINES
from evolve.models.settings import ModelSettings
from evolve.protocols import Environment, Session
from evolve.records import ErrorKind, Strength

ROOT = Path(__file__).parent.parent
COMMANDS = ROOT / "evolve" / "cli" / "commands"
DOCS = ROOT / "docs"
PLACE = re.compile(r"`((?:evolve|prompts|docs|tests|benchmarks|traces)/[\w./-]+)`")
LINK = re.compile(r"\]\(([^)#\s]+)(#[^)\s]*)?\)")


def leaves(node: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Yield each command that does something, with the words that call it."""
    for name, child in node.commands.items():
        if hasattr(child, "commands"):
            yield from leaves(child, (*words, name))
        else:
            yield " ".join((*words, name)), child


LEAVES = dict(leaves(command()))


@pytest.mark.parametrize("words", LEAVES)
def test_command_has_help_for_itself_and_for_each_parameter(words):
    """A command says what it does in a sentence, and each of its options what it is for."""
    found = LEAVES[words]
    assert (found.help or "").strip().split("\n")[0].endswith((".", ":")) or "." in (found.help or "")
    for parameter in found.params:
        if parameter.name != "help":
            assert getattr(parameter, "help", None), f"{words}: {parameter.name} has no help"


@pytest.mark.parametrize("words", LEAVES)
def test_command_has_json(words):
    """Each command takes --json."""
    assert any("--json" in parameter.opts for parameter in LEAVES[words].params)


@pytest.mark.parametrize("word", [verb.__name__ for verb in VERBS] + list(NOUNS))
def test_command_is_named_in_the_readme(word):
    """The README names each command as one calls it."""
    assert f"evolve {word}" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_each_file_of_commands_is_one_command():
    """The files of `commands/` and the commands are the same list."""
    files = {path.stem for path in COMMANDS.glob("*.py")} - {"__init__"}
    assert files == {verb.__name__ for verb in VERBS} | set(NOUNS)


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


@pytest.mark.parametrize("path", pages(), ids=lambda path: path.name)
def test_paths_are_there(path: Path) -> None:
    """A file or folder of the repository that a page names in backticks exists."""
    named = PLACE.findall(path.read_text("utf-8"))
    assert [place for place in named if not (ROOT / place).exists()] == []


def test_exit_codes_are_all_explained() -> None:
    """The table of exit codes has those of the error tree, 0 and 1."""
    codes = {DONE, OUR_BUG, *(error.exit_code for error in errors_below(EvolveError))}
    assert first_column(page("cli.md"), "exit code") == [str(code) for code in sorted(codes)]


def errors_below(error: type[EvolveError]) -> Iterator[type[EvolveError]]:
    for child in error.__subclasses__():
        yield child
        yield from errors_below(child)


def test_variables_are_all_explained() -> None:
    """The table of variables has each that the code looks up by name, and none that it does not name.

    PATH and LC_CTYPE are handed on as they are.
    """
    source = "\n".join(path.read_text("utf-8") for path in PACKAGE.rglob("*.py"))
    shown = first_column(page("configuration.md"), "variable")
    assert [name for name in shown if f'"{name}"' not in source] == []
    assert set(re.findall(r"""environ(?:\.get\(|\[)"([A-Z_]+)\"""", source)) - {"PATH", "LC_CTYPE"} <= set(shown)


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
