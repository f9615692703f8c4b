"""`evolve config`: what is configured, and where each value comes from."""

from __future__ import annotations

import typer

from evolve.cli.options import AsJson, Assignments, ConfigFile, InWorkspace

group = typer.Typer(help="Show the configuration.", no_args_is_help=True)


@group.command("show")
def show_config(
    config: ConfigFile = None,
    assignments: Assignments = None,
    workspace: InWorkspace = None,
    as_json: AsJson = False,
) -> None:
    """Show every value of the configuration and where it comes from; secrets are left out."""
    from evolve.cli.config_text import config_rows
    from evolve.cli.output import show, table
    from evolve.cli.place import find_place

    place = find_place(workspace, file=config, assignments=assignments)
    rows = config_rows(place)
    text = table(("KEY", "VALUE", "SOURCE"), [(key, value["text"], value["source"]) for key, value in rows.items()])
    document = {key: {"value": row["value"], "source": row["source"]} for key, row in rows.items()}
    show({"values": document, "digest": place.config.digest}, text, as_json=as_json)
