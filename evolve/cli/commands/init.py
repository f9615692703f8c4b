"""`evolve init`: makes a workspace."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from evolve.cli.options import AsJson


def init(
    workspace: Annotated[Path, typer.Argument(help="The folder; made where it is missing.", show_default=False)],
    environments: Annotated[
        list[str] | None,
        typer.Option(
            "--env", metavar="NAME", help="An environment; may be repeated.", show_default="all that can be used here"
        ),
    ] = None,
    recorded: Annotated[
        bool, typer.Option("--recorded", help="Answer with the recording that comes with evolve: no key is needed.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Make a workspace: a git repository with evolve.toml, harness_artifacts/, prompts/ and traces/.

    A folder that holds one of these files already is refused, and stays as it is. With --recorded and one --env,
    evolve.toml holds the demo's settings: what the demo does can then be done step by step, and nothing else.
    """
    from evolve.assembly import check_names, clock_of, ready_environments
    from evolve.cli.output import show
    from evolve.demonstration import demo_settings
    from evolve.errors import UserError
    from evolve.workspace import start_workspace

    names = check_names(environments) if environments else ready_environments()
    if recorded and len(names) != 1:
        raise UserError("--recorded goes with one environment: name it with --env")
    settings = {"evolve.toml": demo_settings(names[0]).encode()} if recorded else {}
    commit = start_workspace(workspace, names, date=clock_of(os.environ)(), further=settings)
    root = workspace.resolve()
    first = "" if recorded else f"name your model in {root / 'evolve.toml'}, then "
    text = (
        f"Made a workspace in {root} for {', '.join(names)}.\n"
        f"Next: {first}`evolve doctor -C {workspace}` and `evolve run -C {workspace}`."
    )
    if recorded:
        text += "\nCompletions are RECORDED, of a real local model: a request that is not among them ends a command."
    document = {"workspace": str(root), "environments": names, "commit": commit, "recorded": recorded}
    show(document, text, as_json=as_json)
