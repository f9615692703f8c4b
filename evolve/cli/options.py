"""Options that several commands share, each described once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document on standard output, nothing else.")]
InWorkspace = Annotated[
    Path | None,
    typer.Option(
        "--workspace", "-C", metavar="PATH", help="Work in the workspace that holds PATH.", show_default="this folder"
    ),
]
ConfigFile = Annotated[
    Path | None,
    typer.Option("--config", metavar="FILE", help="A TOML file that outranks evolve.toml.", show_default=False),
]
Assignments = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Set one configuration value, e.g. model.id=my-model.", show_default=False
    ),
]
EnvironmentName = Annotated[
    str | None,
    typer.Option("--env", metavar="NAME", help="The environment.", show_default="the one in evolve.toml"),
]
OfRun = Annotated[
    str | None, typer.Option("--run", metavar="RUN", help="A run, or the beginning of its id.", show_default="latest")
]
OfAnyRun = Annotated[
    str | None, typer.Option("--run", metavar="RUN", help="A run, or the beginning of its id.", show_default="all runs")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be done; do and spend nothing.")]
CandidateId = Annotated[
    str, typer.Argument(metavar="ID", help="A candidate: id, its beginning, or its number in the latest run.")
]
