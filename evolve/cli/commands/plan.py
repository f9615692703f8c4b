"""`evolve plan`: what a run can see, before anything is spent."""

from __future__ import annotations

from typing import Annotated

import typer

from evolve.cli.options import AsJson, Assignments, ConfigFile, EnvironmentName, InWorkspace


def plan(
    env: EnvironmentName = None,
    gain: Annotated[
        float | None,
        typer.Option(metavar="POINTS", help="The gain you hope for, in points per task.", show_default=False),
    ] = None,
    config: ConfigFile = None,
    assignments: Assignments = None,
    workspace: InWorkspace = None,
    as_json: AsJson = False,
) -> None:
    """Say what a run would do: tasks, trials, the smallest gain it can see, and what it costs at most.

    Asks no model. Noise and tokens are as measured in this workspace's earlier runs, where there are any.
    """
    from evolve.cli.outlook import look_ahead, outlook_text
    from evolve.cli.output import show
    from evolve.cli.place import find_place

    place = find_place(workspace, file=config, assignments=assignments, flags={"environment": env})
    outlook = look_ahead(place, wished_gain=None if gain is None else gain / 100.0)
    show(outlook.model_dump(mode="json"), outlook_text(outlook), as_json=as_json)
