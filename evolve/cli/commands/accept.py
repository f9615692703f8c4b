"""`evolve accept`: accepted candidates become commits on the user's branch."""

from __future__ import annotations

from typing import Annotated

import typer

from evolve.cli.options import AsJson, DryRun, InWorkspace


def accept(
    candidates: Annotated[
        list[str], typer.Argument(metavar="ID...", help="Candidates: ids, beginnings, or numbers in the latest run.")
    ],
    dry_run: DryRun = False,
    workspace: InWorkspace = None,
    as_json: AsJson = False,
) -> None:
    """Commit candidates that the gate accepted onto your branch, with their evidence as trailers.

    Each must have been tested against the harness that you have now; your uncommitted changes are never touched. One
    that you rejected may still be accepted.
    """
    from evolve.cli.output import show
    from evolve.cli.place import find_place
    from evolve.cli.reviewing import accept as accept_them
    from evolve.cli.reviewing import accept_preview

    place = find_place(workspace)
    if dry_run:
        would = accept_preview(place, candidates)
        text = "\n\n".join(
            f"{c['candidate_id']} ({'rejected by you before' if c['was_rejected'] else c['state']}):\n"
            f"{c['message']}\n\n{c['diff']}"
            for c in would
        )
        show({"would_accept": would}, text, as_json=as_json)
        return
    done = accept_them(place, candidates)
    text = "\n".join(
        f"{one['candidate_id']} is commit {one['commit'][:12]} on your branch"
        + (", and was rejected before" if one["was_rejected"] else "")
        for one in done
    )
    show({"accepted": done}, text, as_json=as_json)
