"""A small deterministic text household: six kinds of chores, one tool, terse refusals.

Written for small models: short prompts, short observations, 14 steps. Start with `create`.
"""

from evolve.environments.household.environment import HouseholdEnvironment, create

__all__ = ["HouseholdEnvironment", "create"]
