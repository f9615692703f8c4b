"""What the static look at rule code refuses and what it lets through."""

import pytest

from evolve.harness.lint_code import MAX_BYTES, MAX_LINES, Finding, lint_rules

HEAD = "from evolve.rules import PASS, Note, action_rule, trajectory_rule\n"
RULE = '@action_rule(id="action.x", strength="block", evidence="3 tasks")\ndef x(view, memory):\n    return PASS\n'
GOOD = '''"""Rules of the desk."""
from __future__ import annotations
import re
from collections import Counter
from evolve.rules import PASS, Rewrite, action_rule

NUMBER = re.compile("[0-9]+", re.I)
WORDS = frozenset({"the", "a"})
PAIRS = (("go", "walk"), ("get", "take"))
LIMIT: int = -3


def _strip(text: str) -> str:
    return NUMBER.sub("", text)


@action_rule(id="action.strip-the", strength="rewrite", evidence="12 of 40 tasks")
def strip_the(view, memory):
    """Strip articles."""
    memory["n"] = memory.get("n", 0) + 1
    try:
        words = Counter(view.text.split()).most_common(LIMIT)
    except ValueError:
        return PASS
    return Rewrite("take", {"action": _strip(words[0][0])}) if words and type(words) is list else PASS
'''


def test_ordinary_rule_code_has_no_findings():
    """Constants, helpers, regular expressions, memory and the rule API are all that a rule needs."""
    assert lint_rules("action.py", GOOD) == []


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("import os", "os"),
        ("import random", "random"),
        ("from os import path", "os"),
        ("from . import action", "import"),
        ("from re import *", "import of *"),
        ("from re import enum", "re.enum is not public"),
        ("import collections as c", None),
        ("import collections.abc", None),
        ("from collections import abc", None),
        ("import json.decoder", "json.decoder"),
    ],
)
def test_imports_are_those_of_the_list(line, word):
    """Only listed modules, and of these only public names, so that no module leads to another."""
    messages = [f.message for f in lint_rules("action.py", f"{line}\n{HEAD}{RULE}")]
    assert (messages == []) if word is None else (len(messages) == 1 and word in messages[0])


@pytest.mark.parametrize(
    "expression",
    [
        "open('x')",
        "eval('1')",
        "exec('1')",
        "compile('1', 'x', 'eval')",
        "__import__('os')",
        "globals()",
        "vars(view)",
        "print(1)",
        "id(view)",
        "hash(view.text)",
        "getattr(view, view.text)",
        "getattr(view, '__class__')",
        "type('X', (), {})",
        "view.__class__",
        "().__bases__",
        "(lambda: 0).f_globals",
        "'{0.__class__}'.format(view)",
        "__builtins__",
    ],
)
def test_reflection_and_the_outside_are_refused(expression):
    """Each way out of the language that has been used against sandboxes is one finding on its line."""
    source = f"{HEAD}{RULE}".replace("return PASS", f"return {expression}")
    assert [f.line for f in lint_rules("action.py", source)] == [4]


def test_a_module_reached_through_a_module_is_refused():
    """`re.enum.sys` needs no dunder and no forbidden import, and is refused at its first step."""
    source = f"import re\n{HEAD}{RULE}".replace("return PASS", "return re.enum.sys.modules['os'].popen('id')")
    assert lint_rules("action.py", source) == [Finding("action.py", 5, "re.enum is not public")]


@pytest.mark.parametrize(
    "body",
    [
        "SEEN = []",
        "SEEN = {}",
        "SEEN = set()",
        "SEEN = list()",
        "N = 0\nN += 1",
        "for i in (1, 2):\n    pass",
        "PASS.x()",
    ],
)
def test_module_state_is_refused(body):
    """What lives as long as the module is constant; memory is handed in."""
    assert lint_rules("action.py", f"{HEAD}{body}\n{RULE}")


@pytest.mark.parametrize(
    "statement",
    [
        "global N",
        "try:\n        pass\n    except:\n        pass",
        "try:\n        pass\n    except BaseException:\n        pass",
    ],
)
def test_constructs_that_defeat_the_limits_are_refused(statement):
    """A rule neither keeps state in globals nor swallows its own time limit."""
    assert lint_rules("action.py", f"{HEAD}{RULE}".replace("return PASS", f"{statement}\n    return PASS"))


def test_a_mutable_default_is_state():
    """A default list outlives the call, so it is refused."""
    source = HEAD + RULE + "def f(a, seen=[]):\n    return seen\n"
    assert [f.line for f in lint_rules("action.py", source)] == [5]


@pytest.mark.parametrize(
    ("decorator", "word"),
    [
        ('action_rule(id="x", strength="block", evidence="e")', "form"),
        ('action_rule(id="trajectory.x", strength="block", evidence="e")', "form action."),
        ('action_rule(id="action.X", strength="block", evidence="e")', "form"),
        ('action_rule(id="action.x", strength="hard", evidence="e")', "hard"),
        ('action_rule(id="action.x", strength="block", evidence=" ")', "evidence"),
        ('action_rule(id="action." + "x", strength="block", evidence="e")', "plain texts"),
        ('action_rule(id="action.x", strength="block")', "plain texts"),
        ('trajectory_rule(id="action.x", strength="note", evidence="e")', "does not belong"),
        ("staticmethod", "only decorator"),
    ],
)
def test_a_rule_is_declared_in_literals_of_its_layer(decorator, word):
    """Id, strength and evidence can be read without running anything, and the id names the layer of its file."""
    source = f"{HEAD}@{decorator}\ndef x(view, memory):\n    return PASS\n"
    findings = lint_rules("action.py", source)
    assert len(findings) == 1
    assert word in findings[0].message


def test_ids_are_unique_and_a_file_has_a_rule():
    """A second rule of the same id and a file without any rule are refused."""
    assert [f.line for f in lint_rules("action.py", HEAD + RULE + RULE)] == [5]
    assert [f.line for f in lint_rules("action.py", HEAD)] == [1]


def test_other_file_names_are_refused():
    """Rules stand in two files; a third one would never be loaded."""
    assert lint_rules("other.py", HEAD + RULE)


def test_sizes_are_bounded():
    """A file may be as long as the limit and no longer."""
    exact = HEAD + RULE + "\n" * (MAX_LINES - 4)
    assert lint_rules("action.py", exact) == []
    assert lint_rules("action.py", exact + "\n")[0].line == MAX_LINES + 1
    assert "bytes" in lint_rules("action.py", HEAD + RULE + "#" + "x" * MAX_BYTES)[0].message


@pytest.mark.parametrize(
    "source", ["def (", "x = '\x00'", "(" * 500 + ")" * 500, "-" * 20_000 + "1", "x = " + "1+" * 20_000 + "1"]
)
def test_what_does_not_parse_is_one_finding(source):
    """Broken or absurd source is a finding, never an exception of ours."""
    assert len(lint_rules("action.py", source)) == 1
