"""`evolve env`: the installed environments, and the start of a new one."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from evolve.cli.options import AsJson

group = typer.Typer(help="List the installed environments, show one, or start a new one.", no_args_is_help=True)


@group.command("list")
def list_environments(as_json: AsJson = False) -> None:
    """List the installed environments; one that lacks data or an extra says what it needs."""
    from evolve.cli.environment_text import listed_environments, listing_text
    from evolve.cli.output import show
    from evolve.environments.installed import environment_names

    found = listed_environments(environment_names())
    show({"environments": found}, listing_text(found), as_json=as_json)


@group.command("show")
def show_environment(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The environment.")], as_json: AsJson = False
) -> None:
    """Show an environment: limits, splits, families, tools, and how an episode opens."""
    from evolve.cli.environment_text import environment_document, environment_text
    from evolve.cli.output import show

    document = environment_document(name)
    show(document, environment_text(document), as_json=as_json)


@group.command("new")
def new_environment(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Its name: lower-case letters, digits and _.")],
    into: Annotated[
        Path | None, typer.Option("--into", metavar="DIR", help="The folder.", show_default="./NAME")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Start a new environment: a small complete one with its tests, to be changed into yours.

    `pip install -e 'DIR[dev]'` makes it known, `evolve bench verify NAME` checks what every environment has to keep.
    """
    from evolve.cli.output import show
    from evolve.environments.installed import environment_names
    from evolve.environments.template import start_environment
    from evolve.errors import UserError

    if name in environment_names():
        raise UserError(f"the environment {name!r} is installed already; name yours otherwise")
    folder = into or Path(name)
    paths = [str(path) for path in start_environment(name, folder)]
    install = f"pip install -e {shlex.quote(f'{folder}[dev]')}"
    text = f"Wrote {', '.join(paths)}.\nNext: {install}, then `evolve bench verify {name}`."
    show({"environment": name, "files": paths}, text, as_json=as_json)
