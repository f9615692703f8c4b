"""The shipped rows of coding agents, and reading usage by them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from evolve.errors import ConfigError
from evolve.proposers.agents import EventReader, find_row, read_rows, shipped_rows
from evolve.records import Usage

DOCS = Path(__file__).parents[2] / "docs" / "proposers.md"
CI = Path(__file__).parents[2] / ".ci" / "run"
PLACES = {"{prompt}": "do {model} it", "{prompt_file}": "/e/task.md", "{workspace}": "/w", "{evidence}": "/e"}


def test_the_documentation_lists_the_rows_that_ship() -> None:
    """docs/proposers.md has one table row per shipped agent, with its program, keys and install command."""
    table = dict(re.findall(r"^\| `(\w+)` \|(.*`npm .*)\|$", DOCS.read_text("utf-8"), re.MULTILINE))
    rows = shipped_rows()
    assert table.keys() == rows.keys()
    for name, row in rows.items():
        for expected in (row.title, row.install, *row.keys):
            assert expected in table[name]


def test_the_documentation_names_the_versions_that_are_tested() -> None:
    """The versions that `.ci/run` installs for the tests of the agents themselves are those that the page claims."""
    installed = re.findall(r"(\S+)@(\d[\d.]+)", CI.read_text("utf-8"))
    assert {f"npm install -g {package}" for package, _ in installed} == {row.install for row in shipped_rows().values()}
    for package, version in installed:
        title = next(row.title for row in shipped_rows().values() if row.install.endswith(package))
        assert f"{title} {version}" in DOCS.read_text("utf-8").replace("\n", " ")


@pytest.mark.parametrize("host", ["https://api.test", "a.test/v1", "", "a.test:port", "*"])
def test_a_host_that_is_no_name_is_told_when_the_row_is_read(host: str) -> None:
    """Hosts are names with or without a port, or `*` alone; anything else is an error of the row."""
    text = f'[agents.mine]\ntitle = "M"\nprogram = "m"\ninstall = "i"\nargv = ["x"]\nhosts = ["{host}"]\n'
    if host == "*":
        assert read_rows(text, "test")["mine"].hosts == ("*",)
        return
    with pytest.raises(ConfigError, match="is no name, name:port"):
        read_rows(text, "test")


@pytest.mark.parametrize("name", sorted(shipped_rows()))
def test_each_row_makes_a_complete_command(name: str) -> None:
    """The prompt is one argument, no placeholder is left over, and a model can be chosen."""
    row = shipped_rows()[name]
    command = row.command("/bin/x", model="m-1", places=PLACES)
    assert command.count("do {model} it") == 1
    assert not any(part in PLACES for part in command)
    assert any("m-1" in part for part in command)
    assert not any("m-1" in part or "{model}" in part for part in row.command("/bin/x", model=None, places={}))
    assert row.usage is not None
    assert row.keys


CODEX = {"input_tokens": 90, "cached_input_tokens": 40, "output_tokens": 7}
CLAUDE = {"input_tokens": 5, "cache_read_input_tokens": 40, "cache_creation_input_tokens": 45, "output_tokens": 7}
OPENCODE = {"input": 25, "output": 3, "reasoning": 1, "cache": {"read": 20, "write": 0}}


@pytest.mark.parametrize(
    ("name", "events", "usage"),
    [
        (
            "codex",
            [{"type": "item.completed"}, {"type": "turn.completed", "usage": CODEX}],
            Usage(prompt_tokens=90, cached_tokens=40, completion_tokens=7),
        ),
        (
            "claude",
            [
                {"type": "assistant", "message": {"usage": {"input_tokens": 5}}},
                {"type": "result", "total_cost_usd": 0.5, "usage": CLAUDE},
            ],
            Usage(prompt_tokens=90, cached_tokens=40, completion_tokens=7, cost_usd=0.5),
        ),
        (
            "opencode",
            [{"type": "step_finish", "part": {"cost": 0.25, "tokens": OPENCODE}}] * 2,
            Usage(prompt_tokens=90, cached_tokens=40, completion_tokens=8, cost_usd=0.5),
        ),
    ],
)
def test_usage_is_normalised(name: str, events: list[dict[str, Any]], usage: Usage) -> None:
    """Three agents count differently; one record comes out. Other output is passed over."""
    reader = EventReader(find_row(name))
    for line in ("Reading prompt", "{broken", "[1]", *map(json.dumps, events)):
        reader.read(line.encode())
    assert reader.usage == usage


AGAIN = {"type": "error", "message": "Reconnecting... 1/5"}
RETRY = {"type": "system", "subtype": "api_retry", "error": "rate_limit"}


@pytest.mark.parametrize(
    ("name", "events", "words"),
    [
        ("codex", [AGAIN, {"type": "turn.failed", "error": {"message": "status 401"}}], "status 401"),
        ("codex", [AGAIN, {"type": "turn.completed", "usage": {}}], ""),
        ("codex", [{"type": "item.completed", "item": {"type": "error", "message": "x"}}, {"message": 3}], ""),
        ("claude", [RETRY], "rate_limit"),
        ("claude", [RETRY, {"type": "result", "is_error": True, "result": "Key refused"}], "Key refused"),
        ("claude", [RETRY, {"type": "result", "is_error": False, "result": "I added a note"}], ""),
        ("opencode", [{"type": "error", "error": {"name": "APIError", "data": {"message": "no credit"}}}], "no credit"),
        ("opencode", [{"type": "error", "error": {"name": "UnknownError", "data": {}}}], "UnknownError"),
    ],
)
def test_an_agents_own_words_for_its_failure_are_found(name: str, events: list[dict[str, Any]], words: str) -> None:
    """Each tells it elsewhere in its events; the last words count, unless it went on after them."""
    reader = EventReader(find_row(name))
    for line in ("Reading prompt", "{broken", *map(json.dumps, events)):
        reader.read(line.encode())
    assert reader.failure == words


def test_own_rows_outrank_the_shipped_ones(tmp_path: Path) -> None:
    """A file of the user's adds agents and replaces rows of the same name."""
    own = tmp_path / "agents.toml"
    own.write_text('[agents.codex]\ntitle = "Mine"\nprogram = "x"\ninstall = "make"\nargv = ["{prompt}"]')
    assert find_row("codex", str(own)).title == "Mine"
    assert find_row("claude", str(own)).title == "Claude Code"


def test_a_wrong_row_or_name_is_said_plainly() -> None:
    """Broken TOML, an unknown key and an unknown agent are configuration errors that name the fault."""
    with pytest.raises(ConfigError, match="not valid TOML"):
        read_rows("[agents", "mine.toml")
    with pytest.raises(ConfigError, match="program: Field required"):
        read_rows('[agents.x]\ntitle = "X"', "mine.toml")
    with pytest.raises(ConfigError, match="claude, codex, opencode"):
        find_row("cursor")
    with pytest.raises(ConfigError, match=r"no tables \[agents\.NAME\]"):
        read_rows("agents = 3", "mine.toml")


def test_a_file_of_rows_that_does_not_read_is_named_with_its_key(tmp_path: Path) -> None:
    """Absent, a folder, not UTF-8, no TOML: each is a configuration error that says so."""
    (tmp_path / "latin.toml").write_bytes(b"# caf\xe9\n")
    (tmp_path / "broken.toml").write_text("[agents")
    wrong = {"absent": "no such file", ".": "is a folder", "latin": "not UTF-8 (byte 5)", "broken": "not valid TOML"}
    for name, words in wrong.items():
        path = tmp_path / (name if name == "." else f"{name}.toml")
        with pytest.raises(ConfigError) as caught:
            find_row("codex", str(path))
        assert all(part in str(caught.value) for part in ("proposer.agents_file", str(path), words))
