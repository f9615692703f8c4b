"""`evolve init`: makes a workspace."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evolve.cli.options import AsJson


def init(
    workspace: Annotated[Path, typer.Argument(help="The folder; made where it is missing.", show_default=False)],
    as_json: AsJson = False,
) -> None:
    """Make a workspace: a git repository with evolve.toml, harness_artifacts/, prompts/ and traces/.

    A folder that holds one of these files already is refused, and stays as it is.
    """
    from evolve.assembly import environment_names
    from evolve.cli.output import show
    from evolve.cli.start import start_workspace

    names = environment_names()
    commit = start_workspace(workspace, names)
    root = workspace.resolve()
    text = (
        f"Made a workspace in {root} for {', '.join(names)}.\n"
        f"Next: name your model in {root / 'evolve.toml'}, then `evolve doctor -C {workspace}` and "
        f"`evolve run -C {workspace}`."
    )
    show({"workspace": str(root), "environments": names, "commit": commit}, text, as_json=as_json)
