"""Finds what a person means by a short id: the whole of it, a beginning that fits one alone, or a number."""

from __future__ import annotations

from collections.abc import Sequence

from evolve.errors import UserError
from evolve.store import CandidateEntry, Ledger, RunEntry

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
