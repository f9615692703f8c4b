"""`evolve traces`: episodes on disk."""

from __future__ import annotations

from typing import Annotated

import typer

from evolve.cli.options import AsJson, InWorkspace, OfRun

group = typer.Typer(help="List the episodes of a run, or read one as a story.", no_args_is_help=True)


@group.command("list")
def list_traces(
    run: OfRun = None,
    candidate: Annotated[
        str | None,
        typer.Option("--candidate", metavar="ID", help="Only those with this candidate.", show_default=False),
    ] = None,
    task: Annotated[str | None, typer.Option(metavar="TASK", help="Only this task.", show_default=False)] = None,
    failed: Annotated[bool, typer.Option("--failed", help="Only those that were not solved.")] = False,
    workspace: InWorkspace = None,
    as_json: AsJson = False,
) -> None:
    """List the episodes that a run used, by task and trial.

    HARNESS is what was played with: a digest of the harness and of what the run allows it (cap, units switched off), so
    not that of the harness alone. It is "off" where no harness was used.
    """
    from evolve.cli.output import show, table
    from evolve.cli.pick import pick_candidate, pick_run
    from evolve.cli.place import find_place, reading
    from evolve.cli.story import standing_of

    with reading(find_place(workspace)) as ledger:
        arm = pick_candidate(ledger, candidate).candidate.candidate_id if ledger and candidate else None
        found = ledger.episodes(pick_run(ledger, run).run_id, arm=arm) if ledger else []
    episodes = [e for e in found if (task is None or e.task_id == task) and not (failed and e.success)]
    rows = [
        (e.episode_id[:12], e.split, e.task_id, e.trial, standing_of(e), e.score, e.steps, e.stop, e.harness[:8])
        for e in episodes
    ]
    head = ("EPISODE", "SPLIT", "TASK", "TRIAL", "RESULT", "SCORE", "STEPS", "STOPPED BY", "HARNESS")
    document = {"traces": [e.model_dump(mode="json") for e in episodes]}
    show(document, table(head, rows) if rows else "no episodes", as_json=as_json)


@group.command("show")
def show_trace(
    episode: Annotated[str, typer.Argument(metavar="ID", help="An episode: id, or the beginning of it.")],
    full: Annotated[bool, typer.Option("--full", help="Cut nothing short.")] = False,
    workspace: InWorkspace = None,
    as_json: AsJson = False,
) -> None:
    """Read an episode as a story: the task, what the model did, what the harness did, what came back."""
    from evolve.cli.output import say, show
    from evolve.cli.pick import pick_episode
    from evolve.cli.place import find_place, inspecting
    from evolve.cli.story import story
    from evolve.records import Split
    from evolve.traces import Traces

    place = find_place(workspace)
    with inspecting(place) as ledger:
        row = pick_episode(ledger, episode)
    if row.split is Split.GUARD:
        say("this is a guard task: whoever writes a patch must not have read its trace")
    trace = Traces(place.workspace.traces).read(row.trace_path, row.trace_offset)
    show(trace.model_dump(mode="json"), story(trace, is_full=full), as_json=as_json)
