"""`evolve runs`: what is on record of runs."""

from __future__ import annotations

from typing import Annotated

import typer

from evolve.cli.options import AsJson, InWorkspace

group = typer.Typer(help="List runs, or show one.", no_args_is_help=True)


@group.command("list")
def list_runs(workspace: InWorkspace = None, as_json: AsJson = False) -> None:
    """List all runs, newest first."""
    from evolve.cli.output import show, table
    from evolve.cli.place import find_place, reading

    with reading(find_place(workspace)) as ledger:
        runs = ledger.runs() if ledger else []
        rows = [
            (run.run_id, run.environment, run.status, len(ledger.candidates(run.run_id)), run.started_at, run.reason)
            for run in runs
            if ledger
        ]
    text = table(("RUN", "ENVIRONMENT", "STATUS", "CANDIDATES", "STARTED", "ENDED BECAUSE"), rows)
    document = {"runs": [run.model_dump(mode="json") for run in runs]}
    show(document, text if runs else "no runs yet; `evolve run` starts one", as_json=as_json)


@group.command("show")
def show_run(
    run_id: Annotated[
        str | None, typer.Argument(metavar="[RUN]", help="Its id, or the beginning of it.", show_default="latest")
    ] = None,
    workspace: InWorkspace = None,
    as_json: AsJson = False,
) -> None:
    """Show a run: how it ended, what it used, its candidates and their verdicts."""
    from evolve.cli.output import show
    from evolve.cli.pick import pick_run
    from evolve.cli.place import find_place, inspecting
    from evolve.cli.run_text import run_document, run_text

    place = find_place(workspace)
    with inspecting(place) as ledger:
        document = run_document(ledger, pick_run(ledger, run_id))
    show(document, run_text(place, document), as_json=as_json)
