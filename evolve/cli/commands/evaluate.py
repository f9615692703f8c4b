"""`evolve evaluate`: one look at the held-out tasks."""

from __future__ import annotations

from typing import Annotated

import typer

from evolve.cli.options import AsJson, Assignments, ConfigFile, DryRun, EnvironmentName, InWorkspace


def evaluate(
    name: Annotated[str, typer.Argument(metavar="V", help="Name of the frozen version.")],
    env: EnvironmentName = None,
    dry_run: DryRun = False,
    config: ConfigFile = None,
    assignments: Assignments = None,
    workspace: InWorkspace = None,
    as_json: AsJson = False,
) -> None:
    """Evaluate a frozen version on the held-out tasks: base (harness off) against frozen, paired.

    The look is written down before it starts, and each further look is counted: a number that was chosen among
    several looks is worth less.
    """
    from evolve.cli.evaluation_text import evaluate_once, would_evaluate, would_text
    from evolve.cli.output import show
    from evolve.cli.place import find_place

    place = find_place(workspace, file=config, assignments=assignments, flags={"environment": env})
    if dry_run:
        would = would_evaluate(place, name)
        show(would, would_text(would), as_json=as_json)
        return
    evaluate_once(place, name, as_json=as_json)
