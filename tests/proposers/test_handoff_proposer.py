"""Handing the workspace to somebody and picking the edit up."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from evolve.errors import ProposerError
from evolve.proposers.handoff import HandoffProposer
from evolve.protocols import Assignment, Proposed

PROPOSAL = '{"hypothesis": "a note about pending orders", "layer": "contract", "pattern_id": "p1"}'


@pytest.fixture
def assignment(tmp_path: Path) -> Assignment:
    for name in ("workspace", "evidence"):
        (tmp_path / name).mkdir()
    (tmp_path / "workspace" / "harness.toml").write_text("schema_version = 1\n")
    return Assignment("desk", 1, tmp_path / "workspace", tmp_path / "evidence", timeout_s=1)


def ask(assignment: Assignment) -> Proposed:
    return asyncio.run(HandoffProposer().propose(assignment))


def test_it_waits_until_the_proposal_is_there(assignment: Assignment) -> None:
    """First the task is written down; an edit without proposal.json is still work in progress; then it is picked up."""
    assert ask(assignment).is_waiting
    assert str(assignment.workspace) in (assignment.evidence / "task.md").read_text()
    (assignment.workspace / "contract.toml").write_text("# note")
    assert ask(assignment).is_waiting
    (assignment.workspace / "proposal.json").write_text(PROPOSAL)
    for _ in range(2):  # a crash after the first time must not lose it
        proposed = ask(assignment)
        assert not proposed.is_waiting
        assert proposed.proposal is not None


def test_a_proposal_without_an_edit_is_no_candidate(assignment: Assignment) -> None:
    """Somebody who wrote proposal.json and changed no harness file has nothing to propose."""
    ask(assignment)
    (assignment.workspace / "proposal.json").write_text(PROPOSAL)
    proposed = ask(assignment)
    assert (proposed.proposal, proposed.is_waiting) == (None, False)


def test_a_broken_proposal_is_named(assignment: Assignment) -> None:
    """The author learns which field to mend."""
    ask(assignment)
    (assignment.workspace / "proposal.json").write_text('{"layer": "contract", "pattern_id": "p1"}')
    with pytest.raises(ProposerError, match="hypothesis: Field required"):
        ask(assignment)
