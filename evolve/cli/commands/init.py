"""`evolve init`: makes a workspace, or adds environments to one."""

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

    A folder that holds one of these files already is refused, and stays as it is; a .gitignore that is there keeps its
    lines and gets those that it lacks. In a workspace, --env adds the harness folders that are missing and changes
    nothing else. With --recorded and one --env, evolve.toml holds the demo's settings: what the demo does can then be
    done step by step, and nothing else.
    """
    from evolve.cli.output import show
    from evolve.cli.workspace_text import extended_text, started_text
    from evolve.clock import clock_of
    from evolve.demonstration.settings import demo_settings
    from evolve.environments.installed import check_names, ready_environments
    from evolve.errors import UserError
    from evolve.extend import add_environments
    from evolve.workspace import Workspace, start_workspace

    there = Workspace(workspace.resolve())
    names = check_names(environments) if environments else ready_environments()
    if recorded and len(names) != 1:
        raise UserError("--recorded goes with one environment: name it with --env")
    document = {"workspace": str(there.root), "environments": names, "recorded": recorded}
    date = clock_of(os.environ)()
    if environments and not recorded and there.config_file.is_file():
        extended = add_environments(there, names, date=date)
        outcome = {"added": extended.added, "commit": extended.commit}
        show(document | outcome, extended_text(workspace, extended), as_json=as_json)
        return
    settings = {"evolve.toml": demo_settings(names[0]).encode()} if recorded else {}
    commit = start_workspace(workspace, names, date=date, further=settings)
    text = started_text(workspace, names, is_recorded=recorded)
    show(document | {"added": names, "commit": commit}, text, as_json=as_json)
