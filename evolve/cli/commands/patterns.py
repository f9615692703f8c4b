"""`evolve patterns`: what failures have in common."""

from __future__ import annotations

from typing import Annotated

import typer

from evolve.cli.options import AsJson, InWorkspace, OfRun

group = typer.Typer(help="List the patterns in a run's failures, or show one.", no_args_is_help=True)
OfIteration = Annotated[int | None, typer.Option("--iteration", help="An iteration.", show_default="latest")]


@group.command("list")
def list_patterns(
    run: OfRun = None, iteration: OfIteration = None, workspace: InWorkspace = None, as_json: AsJson = False
) -> None:
    """List the patterns of a run, most supported first."""
    from evolve.cli.output import show, table
    from evolve.cli.pick import pick_patterns
    from evolve.cli.place import find_place, reading

    with reading(find_place(workspace)) as ledger:
        found = [entry.pattern for entry in pick_patterns(ledger, run, iteration)] if ledger else []
    rows = [(p.pattern_id, p.failure_class.value, len(p.tasks), p.counter_support, p.signature, p.title) for p in found]
    text = table(("PATTERN", "CLASS", "TASKS", "SUCCESSES TOO", "SIGNATURE", "TITLE"), rows)
    document = {"patterns": [p.model_dump(mode="json") for p in found]}
    show(document, text if rows else "no patterns yet", as_json=as_json)


@group.command("show")
def show_pattern(
    pattern: Annotated[str, typer.Argument(metavar="ID", help="Its id, or the beginning of it.")],
    run: OfRun = None,
    iteration: OfIteration = None,
    workspace: InWorkspace = None,
    as_json: AsJson = False,
) -> None:
    """Show a pattern: support, counter-support, and an excerpt of an episode that shows it."""
    from evolve.cli.candidate_text import pattern_text
    from evolve.cli.output import show
    from evolve.cli.pick import pick, pick_patterns
    from evolve.cli.place import find_place, inspecting

    with inspecting(find_place(workspace)) as ledger:
        found = {entry.pattern.pattern_id: entry.pattern for entry in pick_patterns(ledger, run, iteration)}
    chosen = found[pick(pattern, list(found), what="pattern", listing="evolve patterns list")]
    show(chosen.model_dump(mode="json"), pattern_text(chosen), as_json=as_json)
