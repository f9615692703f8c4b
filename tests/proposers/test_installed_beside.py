"""Programs that are installed in a folder of their own, as npm does it, in the sandbox."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from evolve.proposers.agents import AgentRow
from evolve.proposers.command import CommandProposer
from evolve.proposers.sandbox import Enclosure, find_sandbox
from evolve.protocols import Assignment

SCRIPT = """#!/bin/sh
cat "$(dirname "$(readlink -f "$0")")/words.txt" > said.txt
cat > proposal.json <<END
{"hypothesis": "a note about drawers", "layer": "contract", "pattern_id": "p1", "predicts_fixed": ["t"]}
END
"""


@pytest.mark.parametrize("hidden", ["nothing", "home", "install"])
def test_a_program_behind_a_link_in_its_own_folder_starts(hidden: str, tmp_path: Path) -> None:
    """The `.bin` of a project's `node_modules` is a folder of links into it; each leads to its program inside too."""
    found = find_sandbox()
    if found.sandbox is None:
        pytest.skip(f"no sandbox holds here: {found.reason}")
    modules = tmp_path / "home" / "project" / "node_modules"
    for folder in (tmp_path / "workspace", tmp_path / "evidence", modules / "agent", modules / ".bin"):
        folder.mkdir(parents=True)
    (modules / "agent" / "agent.sh").write_text(SCRIPT)
    (modules / "agent" / "agent.sh").chmod(0o755)
    (modules / "agent" / "words.txt").write_text("found")
    (modules / ".bin" / "my-agent").symlink_to("../agent/agent.sh")
    places = {"nothing": (), "home": (tmp_path / "home",), "install": (modules / ".bin",)}
    row = AgentRow(name="mine", title="Mine", program="my-agent", install="npm install", argv=("{prompt}",))
    proposer = CommandProposer(
        row,
        environ={"PATH": f"{modules / '.bin'}{os.pathsep}{os.environ['PATH']}", "HOME": str(tmp_path / "home")},
        transcripts=tmp_path / "transcripts",
        enclosure=Enclosure(found.sandbox, hidden=places[hidden]),
    )
    assignment = Assignment("desk", 1, tmp_path / "workspace", tmp_path / "evidence", timeout_s=30)
    assert asyncio.run(proposer.propose(assignment)).proposal is not None
    assert (tmp_path / "workspace" / "said.txt").read_text() == "found"
