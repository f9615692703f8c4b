"""ALFWorld's text games (Shridhar et al., 2021): chores in a household, one command a step, admissible ones published.

The engine (alfworld, textworld, fast-downward) is an optional extra with GPL parts; it runs in child processes only.
"""

from evolve.environments.alfworld.environment import Alfworld, create

__all__ = ["Alfworld", "create"]
