"""`evolve reject`: candidates that a person does not want."""

from __future__ import annotations

from typing import Annotated

import typer

from evolve.cli.options import AsJson, InWorkspace


def reject(
    candidates: Annotated[
        list[str], typer.Argument(metavar="ID...", help="Candidates: ids, beginnings, or numbers in the latest run.")
    ],
    workspace: InWorkspace = None,
    as_json: AsJson = False,
) -> None:
    """Refuse candidates that the gate accepted. A ref keeps their patches: refs/evolve/candidates/ID."""
    from evolve.cli.output import show
    from evolve.cli.place import find_place
    from evolve.cli.reviewing import reject as reject_them

    names = reject_them(find_place(workspace), candidates)
    text = "\n".join(f"{name} is rejected; its patch is kept under refs/evolve/candidates/{name}" for name in names)
    show({"rejected": names}, text, as_json=as_json)
