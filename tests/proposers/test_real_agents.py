"""The coding agents themselves, in the sandbox, with a scripted model behind them in place of a live one.

Each is skipped where it is not installed; `prompts/agents.toml` says what installs it.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
from proposers.dialects import COMPLETION_TOKENS, PROMPT_TOKENS, read, run, scripted_endpoint, write

from evolve.errors import ProposerError
from evolve.proposers.agents import AgentRow, shipped_rows
from evolve.proposers.command import CommandProposer
from evolve.proposers.sandbox import Enclosure, choose_sandbox
from evolve.protocols import Assignment

ROWS = shipped_rows()
KEY = "sk-test-" + "k1" * 20
BRIEF = "The agent forgets to open drawers before it looks for things in them.\n"
NOTE = """[[system]]
id = "contract.open-drawers"
text = "Open a drawer before you look into it."
evidence = "the brief"
"""
PROPOSAL = {
    "hypothesis": "a note about drawers",
    "layer": "contract",
    "pattern_id": "p1",
    "predicts_fixed": ["t-1"],
    "at_risk": [],
}


@pytest.fixture(params=sorted(ROWS))
def row(request: pytest.FixtureRequest) -> AgentRow:
    found = ROWS[request.param]
    if shutil.which(found.program) is None:
        pytest.skip(f"{found.title} is not installed: {found.install}")
    return found


def settings(name: str, url: str, home: Path) -> tuple[dict[str, str], str]:
    """Return the variables that lead an agent to its model, and the model's name there; some read a file at home."""
    if name == "codex":
        (home / ".codex").mkdir()
        (home / ".codex" / "config.toml").write_text(f'openai_base_url = "{url}/v1"\n')
        return {"CODEX_API_KEY": KEY}, "scripted"
    if name == "claude":
        return {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": url}, "scripted"
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": f"{url}/v1", "apiKey": KEY},
        "models": {"scripted": {}},
    }
    return {"OPENCODE_CONFIG_CONTENT": json.dumps({"provider": {"own": provider}})}, "own/scripted"


@dataclass(frozen=True)
class Desk:
    """Where an agent works: what it is assigned, and the folders around it."""

    assignment: Assignment
    home: Path
    scratch: Path
    transcripts: Path

    @property
    def workspace(self) -> Path:
        return self.assignment.workspace

    def proposer(self, row: AgentRow, url: str, enclosure: Enclosure | None = None) -> CommandProposer:
        """Return what runs the agent with a model at this address."""
        variables, model = settings(row.name, url, self.home)
        environ = {"PATH": os.environ["PATH"], "HOME": str(self.home), "TMPDIR": str(self.scratch), **variables}
        return CommandProposer(row, environ=environ, transcripts=self.transcripts, model=model, enclosure=enclosure)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    workspace, evidence, home, scratch = (tmp_path / name for name in ("workspace", "evidence", "home", "scratch"))
    for folder in (workspace, evidence, home, scratch):  # not /tmp itself as a scratch: Codex wants no home in there
        folder.mkdir()
    (workspace / "harness.toml").write_text('schema_version = 1\nenvironment = "household"\n')
    (evidence / "brief.md").write_text(BRIEF)
    assignment = Assignment("household", 1, workspace, evidence, timeout_s=120)
    return Desk(assignment, home, scratch, tmp_path / "transcripts")


@pytest.mark.parametrize("is_shut_in", [True, False], ids=["in-the-sandbox", "outside"])
def test_an_agent_reads_the_brief_edits_checks_and_proposes(row: AgentRow, is_shut_in: bool, desk: Desk) -> None:
    """Its row works: model reached, key handed on, evidence read, edit and proposal made, check run, usage counted."""
    found = choose_sandbox("auto")
    if is_shut_in and found.sandbox is None:
        pytest.skip(f"no sandbox holds here: {found.reason}")
    deeds = [
        read(str(desk.assignment.evidence / "brief.md")),
        write(str(desk.workspace / "contract.toml"), NOTE),
        run("evolve harness check ."),
        write(str(desk.workspace / "proposal.json"), json.dumps(PROPOSAL)),
    ]
    enclosure = Enclosure(found.sandbox, hidden=(desk.home,)) if is_shut_in and found.sandbox else None
    with scripted_endpoint(deeds) as endpoint:
        proposed = asyncio.run(desk.proposer(row, endpoint.url, enclosure).propose(desk.assignment))
    assert proposed.proposal is not None
    assert proposed.proposal.hypothesis == PROPOSAL["hypothesis"]
    assert (desk.workspace / "contract.toml").read_text().strip() == NOTE.strip()
    assert endpoint.credentials in ({KEY}, {f"Bearer {KEY}"})
    last = json.dumps(endpoint.asked[-1])
    assert BRIEF.strip() in last
    assert "the harness is fine" in last
    assert proposed.usage.completion_tokens == COMPLETION_TOKENS * (len(deeds) + 1)
    assert proposed.usage.prompt_tokens == PROMPT_TOKENS * (len(deeds) + 1)
    assert proposed.sandbox == ("bubblewrap" if is_shut_in else "none")
    assert proposed.transcript is not None
    assert KEY not in proposed.transcript.read_text()


FAILURES = {
    "codex": "Codex CLI ended with exit code 1: unexpected status 401 Unauthorized: the key is not known",
    "claude": "Claude Code ended with exit code 1: Failed to authenticate. API Error: 401 the key is not known",
    "opencode": "OpenCode ended with exit code 1: the key is not known",
}
AT_ONCE = {"CLAUDE_CODE_MAX_RETRIES": "0"}
"""Else it tries for minutes."""


def test_an_agent_whose_key_is_refused_is_quoted(row: AgentRow, desk: Desk) -> None:
    """The error says why, in the agent's own words."""
    impatient = row.model_copy(update={"set_variables": {**row.set_variables, **AT_ONCE}})
    refusing = scripted_endpoint([], refusal="the key is not known")
    with refusing as endpoint, pytest.raises(ProposerError, match=FAILURES[row.name]):
        asyncio.run(desk.proposer(impatient, endpoint.url).propose(desk.assignment))
