"""Adding to harness files without losing what is there."""

import ast
import tomllib

import pytest

from evolve.proposers.mechanic.edits import with_note, with_rule

OLD = '''"""Mine."""

from __future__ import annotations

import typing
from typing import Any

from evolve.rules import PASS, action_rule


# About one.
@action_rule(id="action.one", strength="note", evidence="e")
def one(view: Any, memory: typing.Any) -> Any:
    return PASS  # as ever
'''
NEW = '''"""Gone."""
import json
import re
from evolve.rules import PASS, Block, action_rule

def shared(x):
    return inner(x)

def inner(x):
    return re.sub("a", "b", x)

def unused(x):
    return json.loads(x)

@action_rule(id="action.two", strength="block", evidence="e")
def two(view, memory):
    return Block(shared(view.text))
'''


def test_a_rule_brings_what_it_needs_and_nothing_else() -> None:
    """Functions are taken along through calls; unused ones and their imports stay behind."""
    added = with_rule(OLD, NEW)
    names = [node.name for node in ast.parse(added).body if isinstance(node, ast.FunctionDef)]
    assert names == ["one", "shared", "inner", "two"]
    assert "json" not in added


def test_what_was_there_stays_word_for_word() -> None:
    """Docstring, comments and rules are kept; the imports become one sorted block."""
    added = with_rule(OLD, NEW)
    head = '"""Mine."""\n\nfrom __future__ import annotations\n\nimport re\nimport typing\nfrom typing import Any\n\n'
    assert added.startswith(head + "from evolve.rules import PASS, Block, action_rule\n\n\n# About one.\n")
    assert OLD.partition("# About one.")[2].rstrip() in added


def test_adding_twice_shares_the_carried_functions() -> None:
    """A second rule with the same needs adds only itself."""
    once = with_rule(OLD, NEW)
    twice = with_rule(once, NEW.replace("two", "three"))
    assert twice.count("def shared(") == twice.count("import re\n") == 1
    assert twice.startswith(once.rstrip())


def test_an_empty_file_gets_the_rule() -> None:
    """Nothing there before is no obstacle."""
    assert ast.parse(with_rule("", NEW))


@pytest.mark.parametrize(
    "text", ['a "quoted" word', "back\\slash", "line\nbreak\tand tab", "null\x00 esc\x1b del\x7f", "ünï"]
)
def test_any_text_makes_valid_toml(text: str) -> None:
    """Quotes, backslashes and control characters of a refusal cannot break contract.toml."""
    before = '# Mine.\n[[system]]\nid = "a"\n'
    after = with_note(before, "tool", {"id": "b", "text": text})
    assert after.startswith(before.rstrip())
    told = tomllib.loads(after)["tool"][0]["text"]
    assert told == "".join(c for c in " ".join(text.split()) if c.isprintable())
