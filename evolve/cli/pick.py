"""Finds what a person means by a short id: the whole of it, a beginning that fits one alone, or a number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from evolve.errors import UserError
from evolve.records import Split
from evolve.store import CandidateEntry, EpisodeEntry, PatternEntry, RunEntry

if TYPE_CHECKING:
    from evolve.store.ledger import Ledger

MOST_NAMED = 5


def pick(written: str, ids: Sequence[str], *, what: str, listing: str) -> str:
    """Return the one id that is `written` or begins with it.

    Args:
        what: the noun for messages.
        listing: the command that shows all.

    Raises:
        UserError: none fits, or several do.
    """
    if written in ids:
        return written
    fitting = sorted({name for name in ids if written and name.startswith(written)})
    if len(fitting) == 1:
        return fitting[0]
    if not fitting:
        raise UserError(f"there is no {what} {written!r}; `{listing}` shows all")
    more = ", …" if len(fitting) > MOST_NAMED else ""
    raise UserError(f"{what} {written!r} may be any of {', '.join(fitting[:MOST_NAMED])}{more}; write more of it")


def pick_run(ledger: Ledger, written: str | None) -> RunEntry:
    """Return the run that is meant; None means the latest."""
    runs = ledger.runs()
    if not runs:
        raise UserError("no runs yet; `evolve run` starts one")
    if written is None:
        return runs[0]
    name = pick(written, [run.run_id for run in runs], what="run", listing="evolve runs list")
    return ledger.run(name)


def pick_candidate(ledger: Ledger, written: str) -> CandidateEntry:
    """Return the candidate that is meant; a number counts within the latest run that has candidates."""
    entries = {entry.candidate.candidate_id: entry for entry in ledger.candidates()}
    if written.isdigit():
        for run in ledger.runs():
            numbers = {e.candidate.number: e for e in entries.values() if e.candidate.run_id == run.run_id}
            if numbers and int(written) in numbers:
                return numbers[int(written)]
            if numbers:
                break
    return entries[pick(written, list(entries), what="candidate", listing="evolve candidates list")]


def pick_patterns(ledger: Ledger, run: str | None, iteration: int | None) -> list[PatternEntry]:
    """Return the patterns of a run (None: the latest) in an iteration (None: its last).

    Raises:
        UserError: the run has no such iteration.
    """
    run_id = pick_run(ledger, run).run_id
    entries = ledger.patterns(run_id)
    if iteration is not None:
        _require_iteration(ledger, run_id, iteration, entries)
    chosen = iteration if iteration is not None else max((entry.iteration for entry in entries), default=0)
    return [entry for entry in entries if entry.iteration == chosen]


def _require_iteration(ledger: Ledger, run_id: str, iteration: int, patterns: Sequence[PatternEntry]) -> None:
    """Refuse an iteration that left neither a pattern nor a candidate, nor lies before one that did."""
    numbers = [entry.iteration for entry in patterns] + [e.candidate.number for e in ledger.candidates(run_id)]
    last = max(numbers, default=0)
    if not 1 <= iteration <= last:
        there = (
            f"its iterations are 1 to {last}" if last > 1 else f"it has {'iteration 1 only' if last else 'none yet'}"
        )
        raise UserError(f"run {run_id} has no iteration {iteration}; {there}")


def pick_episode(ledger: Ledger, written: str) -> EpisodeEntry:
    """Return the training or guard episode that is meant.

    Raises:
        UserError: there is none, or several, or it is a held-out one, whose traces are not shown.
    """
    whole = ledger.episode_row(written)
    if whole is None:
        known = {e.episode_id: e for run in ledger.runs() for e in ledger.episodes(run.run_id)}
        whole = known[pick(written, list(known), what="episode", listing="evolve traces list")]
    if whole.split is Split.HELDOUT:
        raise UserError("this episode is a held-out one; its trace is not shown, so that no patch is written from it")
    return whole
