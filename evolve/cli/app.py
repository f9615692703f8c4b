"""The tree of commands: what each is called and where it stands in the help."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

from evolve.cli.commands import init, run, runs

HELP = """Evolve the harness around a frozen model: roll out, find patterns in the failures, patch, gate, accept.

The model, the environment and its scoring never change; only the files in harness_artifacts/ do, by git commits
that carry their evidence. Each command takes --json. Configuration, strongest first: flags, --set, EVOLVE_*
variables, --config, evolve.toml."""
SETTINGS: dict[str, Any] = {"no_args_is_help": True, "add_completion": False, "rich_markup_mode": None}


def command() -> Callable[..., Any]:
    """Return the whole command line as one callable."""
    app = typer.Typer(help=HELP, context_settings={"help_option_names": ["-h", "--help"]}, **SETTINGS)
    app.callback()(_top)
    app.command("init")(init.init)
    app.command("run")(run.run)
    app.add_typer(runs.group, name="runs")
    return typer.main.get_command(app)


def _top(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.", is_eager=True)] = False,
) -> None:
    if version:
        from evolve import __version__

        print(__version__)
        raise typer.Exit
