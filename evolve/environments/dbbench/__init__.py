"""AgentBench's DBBench: one table, one question or change, SQL as the only way in."""

from collections.abc import Mapping

from evolve.environments.dbbench.environment import DbBench

__all__ = ["create"]


def create(options: Mapping[str, object]) -> DbBench:
    """Make the environment from the table `[environments.dbbench]` of a configuration."""
    return DbBench.from_options(options)
