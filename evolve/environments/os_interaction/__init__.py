"""AgentBench's OS interaction: a question about a Linux machine, or a change to it, by bash in a sandbox of its own."""

from evolve.environments.os_interaction.environment import OsInteraction

create = OsInteraction.from_options

__all__ = ["OsInteraction", "create"]
