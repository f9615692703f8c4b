"""`evolve plan`: what a run can see, before anything is spent."""

from __future__ import annotations

from typing import Annotated

import typer

from evolve.cli.options import AsJson, Assignments, ConfigFile, EnvironmentName, InWorkspace


def plan(
    env: EnvironmentName = None,
    wish: Annotated[
        float | None,
        typer.Option(
            "--wish",
            "--gain",
            min=0.0,
            metavar="GAIN",
            help="The gain you hope for: points per task (5), or a share of the score (0.05).",
            show_default=False,
        ),
    ] = None,
    config: ConfigFile = None,
    assignments: Assignments = None,
    workspace: InWorkspace = None,
    as_json: AsJson = False,
) -> None:
    """Say what a run would do: tasks, trials, noise, the smallest gain it can see, what it takes and costs at most.

    Asks no model. Noise, requests, tokens and seconds are as measured in this workspace's earlier runs with the same
    model, where there are any. What a run would refuse for as things are is said too, and is no error here.
    """
    from evolve.cli.outlook import look_ahead, outlook_text
    from evolve.cli.output import show
    from evolve.cli.place import find_place

    place = find_place(workspace, file=config, assignments=assignments, flags={"environment": env})
    share = wish if wish is None or wish < 1.0 else wish / 100.0
    outlook = look_ahead(place, wished_gain=share)
    show(outlook.model_dump(mode="json"), outlook_text(outlook), as_json=as_json)
