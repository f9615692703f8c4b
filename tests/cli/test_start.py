"""What a command loads before it does anything: no timing, only the names of modules."""

import subprocess
import sys
from pathlib import Path

import pytest

DATABASE = {"sqlalchemy", "sqlmodel", "sqlite3"}
CLIENTS = {"openai", "aiohttp", "httpx"}
REST = {"numpy", "jinja2", "matplotlib", "bm25s", "evolve.assembly", "evolve.rollout", "evolve.loop.session"}
HARNESS = "harness_artifacts/household"
FREE = {
    ("--help",): {"pydantic", "git"} | DATABASE | CLIENTS | REST,
    ("run", "--help"): {"evolve.records", "git"} | DATABASE | CLIENTS | REST,
    ("config", "show"): {"git"} | DATABASE | CLIENTS | REST,
    ("env", "show", "household"): {"git"} | DATABASE | CLIENTS | REST,
    ("harness", "check", HARNESS): {"git"} | DATABASE | CLIENTS | REST,
    ("runs", "list"): DATABASE | CLIENTS | REST,
}
"""What each command works without, in a workspace that has no ledger yet."""
WITH_A_LEDGER = [("runs", "list"), ("runs", "show"), ("candidates", "list"), ("patterns", "list"), ("traces", "list")]


def loaded(*arguments: str, at: Path) -> set[str]:
    """Run a command in a process of its own and return the modules and packages that it loaded."""
    command = [sys.executable, "-X", "importtime", "-m", "evolve", *arguments]
    ended = subprocess.run(command, cwd=at, capture_output=True, text=True, check=True)
    lines = [line for line in ended.stderr.splitlines() if line.startswith("import time:")]
    return {line.rsplit("|", 1)[1].strip() for line in lines}


@pytest.mark.parametrize(("arguments", "free"), FREE.items(), ids=map(" ".join, FREE))
def test_a_command_loads_nothing_that_it_can_do_without(workspace, arguments, free):
    """Help, configuration, environments, a harness's check and empty lists load no database, client or loop."""
    found = loaded(*arguments, at=workspace)
    assert "evolve.cli.app" in found
    assert found & free == set()


@pytest.mark.parametrize("arguments", WITH_A_LEDGER, ids=" ".join)
def test_what_reads_the_ledger_loads_the_database_and_nothing_that_plays(played, arguments):
    """Lists of what is on record load neither git's library, nor templates, nor what rolls out and tests."""
    found = loaded(*arguments, at=played)
    assert "sqlalchemy" in found
    assert found & ({"git"} | CLIENTS | REST) == set()
