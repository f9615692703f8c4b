"""`evolve report`: a run as text, JSON and one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evolve.cli.options import AsJson, InWorkspace


def report(
    run_id: Annotated[
        str | None, typer.Argument(metavar="[RUN]", help="Its id, or the beginning of it.", show_default="latest")
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Where the HTML goes.", show_default=".evolve/reports/RUN.html"),
    ] = None,
    workspace: InWorkspace = None,
    as_json: AsJson = False,
) -> None:
    """Report a run: on the terminal, and as one self-contained HTML file with plots."""
    from evolve.cli.output import say, show
    from evolve.cli.place import find_place
    from evolve.cli.reporting import report_of, write_page
    from evolve.report import text

    place = find_place(workspace)
    found = report_of(place, run_id)
    target = html or place.workspace.reports / f"{found.run.run_id}.html"
    write_page(found, target)
    show({**found.model_dump(mode="json"), "html": str(target)}, text(found).rstrip(), as_json=as_json)
    say(f"HTML: {target}")
