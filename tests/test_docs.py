"""Each command has help and --json, stands in the README, and has a file of its own."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evolve.cli.app import NOUNS, VERBS, command

ROOT = Path(__file__).parent.parent
COMMANDS = ROOT / "evolve" / "cli" / "commands"


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
