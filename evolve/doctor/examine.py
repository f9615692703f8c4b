"""Looks at all of it, in the order in which one would mend it."""

from __future__ import annotations

from collections.abc import Mapping

from evolve.config import Config
from evolve.doctor.agents import agents, proposer_sandbox
from evolve.doctor.environments import environments, isolation
from evolve.doctor.finding import Finding
from evolve.doctor.installed import extras, git, python, sqlite
from evolve.doctor.model import model
from evolve.doctor.refusals import Refusal, model_name, refusals
from evolve.doctor.workspace import workspace_state
from evolve.workspace import Workspace


async def examine(
    workspace: Workspace | None, config: Config | None, environ: Mapping[str, str], *, is_offline: bool
) -> list[Finding]:
    """Look at everything, in the order in which one would mend it. What a run would refuse for is told in its words.

    Args:
        workspace: None outside one; its state is then passed over.
        config: None where it does not read; what depends on it is then passed over.
        environ: where keys are looked up.
        is_offline: do not ask the model.
    """
    known = config or Config()
    refused = [_finding(one) for one in refusals(workspace, config, environ)] if config else []
    source = [config.model] if config else []
    told = {finding.name for finding in refused}
    own = [
        python(),
        git(),
        *extras(),
        *environments(known),
        await isolation(known),
        *[await model(one, environ, is_offline=is_offline) for one in source if model_name(one) not in told],
        *agents(known, environ),
        proposer_sandbox(known, environ),
        sqlite(),
        *(workspace_state(workspace, config, told) if workspace else ()),
    ]
    return [*(finding for finding in own if finding.name not in told), *refused]


def _finding(refusal: Refusal) -> Finding:
    return Finding(name=refusal.about, status="missing", detail=refusal.reason, mend=refusal.mend, blocks=True)
