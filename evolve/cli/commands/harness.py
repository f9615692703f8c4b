"""`evolve harness`: looks at harness files without running them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evolve.cli.options import AsJson

group = typer.Typer(help="Check a harness folder.", no_args_is_help=True)


@group.callback()
def _group() -> None:
    """Keep `check` a command of its own."""


@group.command("check")
def check(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="The harness folder.")], as_json: AsJson = False
) -> None:
    """Check the files of a harness: that they read, unit ids, text limits, what rule code may use. Runs nothing.

    Exit code 2 where something is wrong.
    """
    from evolve.cli.codes import USAGE
    from evolve.cli.output import show
    from evolve.figures import count
    from evolve.harness.check import check_folder

    findings = check_folder(path)
    text = "\n".join([*findings, count(len(findings), "finding")]) if findings else f"{path}: the harness is fine"
    show({"path": str(path), "findings": findings}, text, as_json=as_json)
    if findings:
        raise typer.Exit(USAGE)
