"""The proposer without a model: turns known signatures into patches. The baseline that a coding agent must beat."""

from evolve.proposers.mechanic.mechanic import Mechanic

__all__ = ["Mechanic"]
