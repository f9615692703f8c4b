"""The evidence folder that a proposer reads: brief, rule API, patterns with excerpts, tools, history."""

from evolve.evidence.folder import Attempt, Constraints, write_evidence

__all__ = ["Attempt", "Constraints", "write_evidence"]
