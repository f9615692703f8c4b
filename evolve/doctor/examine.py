"""Looks at all of it, in the order in which one would mend it."""

from __future__ import annotations

from collections.abc import Mapping

from evolve.config import Config
from evolve.doctor.agents import agents, proposer_sandbox
from evolve.doctor.environments import environments, isolation
from evolve.doctor.finding import Finding
from evolve.doctor.installed import extras, git, python, sqlite
from evolve.doctor.model import model
from evolve.doctor.workspace import workspace_state
from evolve.workspace import Workspace


async def examine(
    workspace: Workspace | None, config: Config, environ: Mapping[str, str], *, is_offline: bool
) -> list[Finding]:
    """Look at everything, in the order in which one would mend it.

    Args:
        workspace: None outside one; its state is then passed over.
        environ: where keys are looked up.
        is_offline: do not ask the model.
    """
    return [
        python(),
        git(),
        *extras(),
        *environments(config),
        await isolation(config),
        await model(config.model, environ, is_offline=is_offline),
        *agents(config, environ),
        proposer_sandbox(config, environ),
        sqlite(),
        *(workspace_state(workspace, config) if workspace else ()),
    ]
