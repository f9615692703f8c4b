"""`evolve doctor`: what is installed, reachable, missing."""

from __future__ import annotations

from typing import Annotated

import typer

from evolve.cli.options import AsJson, Assignments, ConfigFile, InWorkspace


def doctor(
    offline: Annotated[bool, typer.Option("--offline", help="Do not ask the model.")] = False,
    config: ConfigFile = None,
    assignments: Assignments = None,
    workspace: InWorkspace = None,
    as_json: AsJson = False,
) -> None:
    """Say what is installed, reachable and missing, with the command that mends each.

    A configured model is asked for one tiny tool call. Works outside a workspace too. Exit code 2 where something
    is missing that a run needs.
    """
    from evolve.cli.codes import USAGE
    from evolve.cli.doctor_text import doctor_text, look_around
    from evolve.cli.output import show

    findings = look_around(workspace, file=config, assignments=assignments, is_offline=offline)
    show({"findings": [f.model_dump(mode="json") for f in findings]}, doctor_text(findings), as_json=as_json)
    if any(finding.blocks for finding in findings):
        raise typer.Exit(USAGE)
