"""`evolve runs`: what is on record of runs."""

from __future__ import annotations

from typing import Annotated

import typer

from evolve.cli.options import AsJson, InWorkspace

group = typer.Typer(help="List runs, or show one.", no_args_is_help=True)


@group.command("list")
def list_runs(workspace: InWorkspace = None, as_json: AsJson = False) -> None:
    """List all runs, newest first."""
    from evolve.cli.output import show
    from evolve.cli.place import find_place, reading
    from evolve.cli.run_text import run_row, runs_table
    from evolve.lock import run_under_way

    place = find_place(workspace)
    before = run_under_way(place.workspace.lock_file)
    with reading(place) as ledger:
        runs = ledger.runs() if ledger else []
        tested = {run.run_id: len(ledger.candidates(run.run_id)) for run in runs if ledger}
    played = (before, run_under_way(place.workspace.lock_file))
    rows = [run_row(run, played) for run in runs]
    show({"runs": rows}, runs_table(rows, tested) if rows else "no runs yet; `evolve run` starts one", as_json=as_json)


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
    from evolve.lock import run_under_way

    place = find_place(workspace)
    before = run_under_way(place.workspace.lock_file)
    with inspecting(place) as ledger:
        entry = pick_run(ledger, run_id)
        document = run_document(ledger, entry, (before, run_under_way(place.workspace.lock_file)))
    show(document, run_text(place, document), as_json=as_json)
