"""`evolve run`: the loop."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from evolve.cli.options import AsJson, Assignments, ConfigFile, DryRun, EnvironmentName, InWorkspace

OneRun = Annotated[
    str | None, typer.Argument(metavar="[RUN]", help="With --resume: which run to go on with.", show_default="latest")
]
Iterations = Annotated[int | None, typer.Option(help="Passes of the loop at most.", show_default="as configured")]
Dollars = Annotated[float | None, typer.Option(help="US dollars at most.", show_default="no limit")]
Tokens = Annotated[int | None, typer.Option(help="Tokens at most.", show_default="no limit")]
Seconds = Annotated[float | None, typer.Option(metavar="SECONDS", help="Seconds at most.", show_default="no limit")]


def run(
    run_id: OneRun = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a run that ended early.")] = False,
    env: EnvironmentName = None,
    iterations: Iterations = None,
    budget_usd: Dollars = None,
    budget_tokens: Tokens = None,
    time_limit: Seconds = None,
    accept: Annotated[
        bool, typer.Option("--accept", help="Commit accepted candidates onto your branch when the run is done.")
    ] = False,
    dry_run: DryRun = False,
    config: ConfigFile = None,
    assignments: Assignments = None,
    workspace: InWorkspace = None,
    as_json: AsJson = False,
) -> None:
    """Evolve a harness: roll out, find patterns, have patches proposed, gate them.

    Accepted candidates are commits on the branch evolve/RUN and wait for `evolve review`. Ctrl-C, or a file named
    STOP in the workspace, ends the run cleanly; --resume goes on from there with the options that the run was given
    (but for --accept and those of the ledger), and asks the model nothing twice.
    """
    from evolve.cli.outlook import look_ahead, outlook_text
    from evolve.cli.output import show
    from evolve.cli.place import find_place
    from evolve.cli.running import run_to_its_end, run_to_resume

    if run_id and not resume:
        raise typer.BadParameter("a run is named with --resume only")
    flags = {
        "environment": env,
        "iterations": iterations,
        "budget.usd": budget_usd,
        "budget.tokens": budget_tokens,
        "budget.time_limit_s": time_limit,
    }
    find = partial(find_place, workspace, file=config, assignments=assignments, flags=flags)
    before = None
    if resume:
        run_id, before = run_to_resume(find(only=("ledger", "environment")), run_id)
    place = find(before=before)
    if dry_run:
        outlook = look_ahead(place, resume=run_id)
        show(outlook.model_dump(mode="json"), outlook_text(outlook), as_json=as_json)
        return
    run_to_its_end(place, resume=run_id, accepts=accept, as_json=as_json)
