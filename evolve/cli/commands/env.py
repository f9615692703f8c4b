"""`evolve env`: the installed environments."""

from __future__ import annotations

from typing import Annotated

import typer

from evolve.cli.options import AsJson

group = typer.Typer(help="List the installed environments, or show one.", no_args_is_help=True)


@group.command("list")
def list_environments(as_json: AsJson = False) -> None:
    """List the installed environments."""
    from evolve.assembly import environment_names
    from evolve.cli.environment_text import environment_document
    from evolve.cli.output import show, table

    found = [environment_document(name) for name in environment_names()]
    rows = [(e["name"], e["version"], e["train"], e["guard"], e["step_limit"], e["description"]) for e in found]
    text = table(("NAME", "VERSION", "TRAIN", "GUARD", "STEPS", "DESCRIPTION"), rows)
    show({"environments": found}, text, as_json=as_json)


@group.command("show")
def show_environment(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The environment.")], as_json: AsJson = False
) -> None:
    """Show an environment: limits, splits, families, tools, and how an episode opens."""
    from evolve.cli.environment_text import environment_document, environment_text
    from evolve.cli.output import show

    document = environment_document(name)
    show(document, environment_text(document), as_json=as_json)
