"""The `handoff` proposer: prepares the workspace, stops, and picks the edit up once proposal.json is there.

A person, or any agent that somebody runs by hand, does the work in between.
"""

from __future__ import annotations

from pathlib import Path

from evolve.proposers.command import task_prompt
from evolve.proposers.proposal_file import fingerprint, has_proposal, read_proposal
from evolve.protocols import Assignment, Proposed
from evolve.repository import start_throwaway_history

_BASELINE = "workspace.sha256"


class HandoffProposer:
    """Waits for somebody else's edit.

    Args:
        templates: folder of prompts that outrank the packaged ones.
    """

    def __init__(self, *, templates: Path | None = None) -> None:
        self._templates = templates

    @property
    def kind(self) -> str:
        """Handoff."""
        return "handoff"

    async def propose(self, assignment: Assignment) -> Proposed:
        """Hand the workspace over, or read back what was done in it. Safe to repeat: nothing is consumed.

        Returns:
            Proposed with `is_waiting` until proposal.json is there; then its proposal, or None where no
            harness file was changed.

        Raises:
            ProposerError: proposal.json is not a valid proposal; says what is wrong.
        """
        baseline = assignment.evidence / _BASELINE
        if not baseline.exists():
            start_throwaway_history(assignment.workspace)
            (assignment.evidence / "task.md").write_text(task_prompt(assignment, self._templates), "utf-8")
            baseline.write_text(fingerprint(assignment.workspace), "ascii")
        if not has_proposal(assignment.workspace):
            return Proposed(None, is_waiting=True)
        proposal = read_proposal(assignment.workspace)
        is_changed = fingerprint(assignment.workspace) != baseline.read_text("ascii")
        return Proposed(proposal if is_changed else None)
