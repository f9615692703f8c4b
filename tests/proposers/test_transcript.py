"""Transcripts are kept."""

from __future__ import annotations

from pathlib import Path

from evolve.proposers.transcript import new_transcript
from evolve.protocols import Assignment


def test_no_attempt_writes_over_an_earlier_one(tmp_path: Path) -> None:
    """What was said in an earlier run, or before a resume, may be the only evidence of what came out."""
    assignment = Assignment("desk", 3, tmp_path / "w", tmp_path / "e", timeout_s=1)
    made = [new_transcript(tmp_path / "transcripts", assignment, "codex", ".log") for _ in range(3)]
    assert [path.name for path in made] == ["desk-003-codex.log", "desk-003-codex.2.log", "desk-003-codex.3.log"]
    assert all(path.is_file() for path in made)
