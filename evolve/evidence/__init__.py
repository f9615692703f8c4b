"""The evidence folder that a proposer reads: brief, rule API, patterns with excerpts, tools, history."""

from evolve.evidence.contents import Attempt, Constraints, Evidence
from evolve.evidence.folder import write_evidence

__all__ = ["Attempt", "Constraints", "Evidence", "write_evidence"]
