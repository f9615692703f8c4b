"""`evolve candidates`: patches, what the gate found of them, and where they stand."""

from __future__ import annotations

import typer

from evolve.cli.options import AsJson, CandidateId, InWorkspace, OfAnyRun

group = typer.Typer(help="List candidates, show one with its evidence, or show its patch.", no_args_is_help=True)


@group.command("list")
def list_candidates(run: OfAnyRun = None, workspace: InWorkspace = None, as_json: AsJson = False) -> None:
    """List candidates with their verdicts; gains are in points per task."""
    from evolve.cli.output import show
    from evolve.cli.pick import pick_run
    from evolve.cli.place import find_place, reading
    from evolve.cli.run_text import candidate_row, candidate_table

    with reading(find_place(workspace)) as ledger:
        run_id = pick_run(ledger, run).run_id if ledger and run else None
        rows = [candidate_row(entry) for entry in ledger.candidates(run_id)] if ledger else []
    show({"candidates": rows}, candidate_table(rows) if rows else "no candidates yet", as_json=as_json)


@group.command("show")
def show_candidate(candidate: CandidateId, workspace: InWorkspace = None, as_json: AsJson = False) -> None:
    """Show a candidate: hypothesis, pattern with excerpt, and what each stage of the gate found."""
    from evolve.cli.candidate_text import candidate_document, candidate_text
    from evolve.cli.output import show
    from evolve.cli.pick import pick_candidate
    from evolve.cli.place import find_place, inspecting

    with inspecting(find_place(workspace)) as ledger:
        document = candidate_document(ledger, pick_candidate(ledger, candidate))
    show(document, candidate_text(document), as_json=as_json)


@group.command("diff")
def diff_candidate(candidate: CandidateId, workspace: InWorkspace = None, as_json: AsJson = False) -> None:
    """Show a candidate's patch against the harness it was tested against."""
    from evolve.cli.candidate_text import candidate_diff
    from evolve.cli.output import show, show_diff
    from evolve.cli.pick import pick_candidate
    from evolve.cli.place import find_place, inspecting

    place = find_place(workspace)
    with inspecting(place) as ledger:
        found = pick_candidate(ledger, candidate).candidate
    diff = candidate_diff(place, found)
    if as_json:
        show({"candidate_id": found.candidate_id, "files": found.files, "diff": diff}, "", as_json=True)
    else:
        show_diff(diff)
