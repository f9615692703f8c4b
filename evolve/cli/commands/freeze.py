"""`evolve freeze`: seals a harness version."""

from __future__ import annotations

from typing import Annotated

import typer

from evolve.cli.options import AsJson, Assignments, ConfigFile, DryRun, InWorkspace


def freeze(
    env: Annotated[str, typer.Argument(metavar="ENV", help="The environment.")],
    name: Annotated[str, typer.Option("--name", metavar="V", help="Name of the version, e.g. v1.")],
    dry_run: DryRun = False,
    config: ConfigFile = None,
    assignments: Assignments = None,
    workspace: InWorkspace = None,
    as_json: AsJson = False,
) -> None:
    """Seal the committed harness of an environment: an annotated tag evolve/ENV/V with a manifest.

    Only a frozen version can be evaluated on held-out tasks, and only on those that were listed when it was frozen:
    the options of the environment must be the same then.
    """
    from evolve.cli.output import show
    from evolve.cli.place import find_place
    from evolve.cli.sealing import freeze_committed, frozen_text, would_freeze

    place = find_place(workspace, file=config, assignments=assignments)
    if dry_run:
        would = would_freeze(place, env, name)
        text = f"would tag {would['tag']} at {would['commit'][:12]}, harness {would['harness'][:12]}"
        show({"would_freeze": would}, text, as_json=as_json)
        return
    frozen = freeze_committed(place, env, name)
    show(frozen.model_dump(mode="json"), frozen_text(place, frozen), as_json=as_json)
