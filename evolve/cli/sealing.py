"""Opens what a freeze needs and hands it down."""

from __future__ import annotations

from evolve.cli.place import Place, reading, writing
from evolve.environments.installed import make_environment
from evolve.freeze import freeze_head, freeze_preview
from evolve.records import FrozenHarness, Json
from evolve.repository import open_repository


def freeze_committed(place: Place, environment: str, name: str) -> FrozenHarness:
    """Freeze the committed harness of an environment."""
    options = place.config.environments.get(environment, {})
    made = make_environment(environment, options)
    with writing(place) as desk:
        return freeze_head(desk.repository, desk.ledger, made, options, name=name, date=place.now())


def would_freeze(place: Place, environment: str, name: str) -> Json:
    """Return what a freeze would seal; it refuses as a freeze does."""
    options = place.config.environments.get(environment, {})
    made = make_environment(environment, options)
    with reading(place) as ledger, open_repository(place.workspace.root) as repository:
        return freeze_preview(repository, ledger, made, options, name=name)


def frozen_text(place: Place, frozen: FrozenHarness) -> str:
    """Return a frozen version for people, and what may be done with it."""
    commitment = frozen.manifest["heldout_commitment"]
    if commitment:
        evaluate = place.then("evaluate", frozen.name, "--env", frozen.environment, is_told=True)
        after = f"Next: `{evaluate}` looks at the held-out tasks, on the record."
    else:
        after = (
            "This version can never be evaluated: bring the held-out data (`evolve bench info` says what is missing), "
            "then freeze the harness under a new name."
        )
    return "\n".join(
        [
            f"{frozen.tag} seals harness {frozen.harness[:12]} at commit {frozen.commit[:12]}.",
            f"Held-out commitment: {commitment or 'none, the data is not on this machine'}.",
            after,
        ]
    )
