"""Builds the report of a run that a person names."""

from __future__ import annotations

from evolve.cli.pick import pick_run
from evolve.cli.place import Place, inspecting
from evolve.report import Report, build
from evolve.repository import open_repository
from evolve.traces import Traces


def report_of(place: Place, written: str | None) -> Report:
    """Return the report of a run; None means the latest."""
    with inspecting(place) as ledger, open_repository(place.workspace.root) as repository:
        run = pick_run(ledger, written)
        return build(ledger, repository, Traces(place.workspace.traces), run.run_id)
