"""Builds the report of a run that a person names."""

from __future__ import annotations

from pathlib import Path

from evolve.cli.pick import pick_run
from evolve.cli.place import Place, inspecting
from evolve.cli.run_text import was_killed
from evolve.errors import StoreError
from evolve.lock import run_under_way
from evolve.report import Report, build, write_html
from evolve.repository import open_repository
from evolve.traces import Traces


def report_of(place: Place, written: str | None) -> Report:
    """Return the report of a run; None means the latest."""
    before = run_under_way(place.workspace.lock_file)
    with inspecting(place) as ledger, open_repository(place.workspace.root) as repository:
        run = pick_run(ledger, written)
        played = (before, run_under_way(place.workspace.lock_file))
        report = build(ledger, repository, Traces(place.workspace.traces), run.run_id)
    facts = report.run.model_copy(update={"is_interrupted": was_killed(run, played)})
    return report.model_copy(update={"run": facts})


def write_page(report: Report, target: Path) -> None:
    """Write the HTML file of a report.

    Raises:
        StoreError: it cannot be written; the message names the option that puts it elsewhere.
    """
    try:
        write_html(report, target)
    except StoreError as error:
        raise StoreError(f"{error} (--html FILE names another place)") from error
