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
    as_json: AsJson = False,
) -> None:
    """Make a workspace: a git repository with evolve.toml, harness_artifacts/, prompts/ and traces/.

    A folder that holds one of these files already is refused, and stays as it is.
    """
    from evolve.assembly import check_names, clock_of, ready_environments
    from evolve.cli.output import show
    from evolve.workspace import start_workspace

    names = check_names(environments) if environments else ready_environments()
    commit = start_workspace(workspace, names, date=clock_of(os.environ)())
    root = workspace.resolve()
    text = (
        f"Made a workspace in {root} for {', '.join(names)}.\n"
        f"Next: name your model in {root / 'evolve.toml'}, then `evolve doctor -C {workspace}` and "
        f"`evolve run -C {workspace}`."
    )
    show({"workspace": str(root), "environments": names, "commit": commit}, text, as_json=as_json)
