"""Starts a run for the command line, draws it, and tells at its end what is on record, however it ended."""

from __future__ import annotations

from dataclasses import replace

from evolve.cli.live import live_progress
from evolve.cli.output import say, show
from evolve.cli.pick import pick_run
from evolve.cli.place import Place, inspecting, reading, wait_for, writing
from evolve.cli.run_text import run_document, run_text
from evolve.config import Told
from evolve.doctor import require_startable, warnings
from evolve.environments.installed import environment_maker
from evolve.errors import EvolveError
from evolve.loop.accept import take_all
from evolve.loop.beginning import latest_unfinished
from evolve.loop.session import run_session
from evolve.store import RunEntry


def run_to_resume(place: Place, written: str | None) -> tuple[str, Told]:
    """Return the run to go on with, and what it was told before.

    Args:
        place: its environment counts where it was named by an option or a variable; evolve.toml names a default.
        written: what was written for its id; None means the latest that is not done.

    Raises:
        UserError: there is none, or no such environment.
    """
    is_named = place.sources.get("environment") not in (None, str(place.workspace.config_file))
    environment = place.config.environment if is_named else None
    if environment is not None:
        environment_maker(environment)
    with inspecting(place) as ledger:
        entry = pick_run(ledger, written) if written else latest_unfinished(ledger, environment)
        before = Told.of(ledger.run_options(entry.run_id))
        return entry.run_id, replace(before, line={"environment": entry.environment, **before.line})


def run_to_its_end(place: Place, *, resume: str | None, accepts: bool, as_json: bool) -> None:
    """Start or resume a run, and print what is on record of it also where it ended early.

    Args:
        resume: the run to go on with; None starts a new one.
        accepts: commit the accepted candidates onto the user's branch, in order.

    Raises:
        EvolveError: it ended early.
    """
    require_startable(place.workspace, place.config, place.environ, is_new=resume is None)
    for text in warnings(place.workspace, place.config) if resume is None else ():
        say(f"warning: {text}")
    try:
        with live_progress() as progress:
            ran = wait_for(
                run_session(
                    place.workspace,
                    place.config,
                    resume=resume,
                    options=place.told.as_json(),
                    environ=place.environ,
                    progress=progress,
                )
            )
    except EvolveError as error:
        _show_ended(place, str(error), as_json=as_json)
        raise
    if ran.outcome.message:
        say(ran.outcome.message)
    try:
        if accepts:
            _accept_all(place, ran.entry)
    finally:
        show_run(place, ran.entry.run_id, as_json=as_json)


def show_run(place: Place, run_id: str, *, as_json: bool) -> None:
    """Print what is on record of a run."""
    with inspecting(place) as ledger:
        document = run_document(ledger, ledger.run(run_id))
    show(document, run_text(place, document), as_json=as_json)


def _accept_all(place: Place, entry: RunEntry) -> None:
    with writing(place) as held:
        take_all(held.repository, held.ledger, entry.run_id, date=place.now(), say=say)


def _show_ended(place: Place, reason: str, *, as_json: bool) -> None:
    """Print the run that this error ended, where it had begun."""
    with reading(place) as ledger:
        ended = [entry for entry in ledger.runs() if entry.reason == reason] if ledger else []
    if ended:
        show_run(place, ended[0].run_id, as_json=as_json)
