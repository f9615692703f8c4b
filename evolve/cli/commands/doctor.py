"""`evolve doctor`: what is installed, reachable, missing."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from evolve.cli.options import AsJson, Assignments, ConfigFile, InWorkspace


def doctor(
    offline: Annotated[bool, typer.Option("--offline", help="Do not ask the model.")] = False,
    redteam: Annotated[bool, typer.Option("--redteam", help="Attack this machine instead, and say what held.")] = False,
    config: ConfigFile = None,
    assignments: Assignments = None,
    workspace: InWorkspace = None,
    as_json: AsJson = False,
) -> None:
    """Say what is installed, reachable and missing, with the command that mends each.

    A configured model is asked for one tiny tool call. Works outside a workspace too. Exit code 2 where something
    is missing that a run needs. With --redteam hostile rule code and a hostile coding agent are let loose on canaries
    in a temporary folder, each attack beside the same one without the defence; exit code 2 where one did not hold.
    """
    from evolve.cli.codes import USAGE
    from evolve.cli.doctor_text import doctor_text, look_around
    from evolve.cli.output import show

    if redteam:
        from evolve.cli.redteam_text import redteam_text
        from evolve.redteam.suite import attack_this_machine

        outcomes = attack_this_machine(os.environ)
        show({"attacks": [o.model_dump(mode="json") for o in outcomes]}, redteam_text(outcomes), as_json=as_json)
        if any(outcome.verdict == "not held" for outcome in outcomes):
            raise typer.Exit(USAGE)
        return
    findings = look_around(workspace, file=config, assignments=assignments, is_offline=offline)
    show({"findings": [f.model_dump(mode="json") for f in findings]}, doctor_text(findings), as_json=as_json)
    if any(finding.blocks for finding in findings):
        raise typer.Exit(USAGE)
