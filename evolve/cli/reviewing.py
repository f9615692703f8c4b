"""What a person does with candidates that the gate accepted: goes through them, takes them or refuses them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from evolve.cli.candidate_text import candidate_diff, candidate_document, candidate_text
from evolve.cli.output import say, show_diff, visible
from evolve.cli.pick import pick_candidate
from evolve.cli.place import Place, inspecting, reading, writing
from evolve.errors import EvolveError
from evolve.loop.accept import commit_message, require_takeable, take
from evolve.records import Json
from evolve.repository import open_repository
from evolve.seal import require_whole
from evolve.store import CandidateEntry, Review

if TYPE_CHECKING:
    from evolve.store.ledger import Ledger

QUESTION = "accept, reject, skip or quit? [a/r/s/q] "


def chosen(ledger: Ledger, written: Sequence[str]) -> list[CandidateEntry]:
    """Return the candidates that are meant, each once, in the order in which they build on one another."""
    found = {entry.candidate.candidate_id: entry for entry in (pick_candidate(ledger, one) for one in written)}
    return sorted(found.values(), key=lambda entry: (entry.candidate.run_id, entry.candidate.number))


def accept(place: Place, written: Sequence[str]) -> list[Json]:
    """Commit candidates onto the user's branch, one after the other; those before a failure stay."""
    done = []
    with writing(place) as desk:
        for entry in chosen(desk.ledger, written):
            name = entry.candidate.candidate_id
            commit = take(desk.repository, desk.ledger, name, date=place.now())
            done.append({"candidate_id": name, "commit": commit, "was_rejected": entry.review is Review.REFUSED})
    return done


def accept_preview(place: Place, written: Sequence[str]) -> list[Json]:
    """Return what `accept` would commit.

    Raises:
        EvolveError: it would refuse, and why.
    """
    with inspecting(place) as ledger, open_repository(place.workspace.root) as repository:
        entries = chosen(ledger, written)
        require_whole(repository, ledger)
        require_takeable(repository, ledger, entries)
    return [
        {
            "candidate_id": entry.candidate.candidate_id,
            "state": entry.state.value,
            "was_rejected": entry.review is Review.REFUSED,
            "message": commit_message(entry.candidate),
            "diff": candidate_diff(place, entry.candidate),
        }
        for entry in entries
    ]


def reject(place: Place, written: Sequence[str]) -> list[str]:
    """Write down that these candidates are not wanted; a ref keeps each."""
    with writing(place) as desk:
        names = [entry.candidate.candidate_id for entry in chosen(desk.ledger, written)]
        for name in names:
            desk.ledger.refuse(name)
    return names


def waiting(place: Place) -> list[Json]:
    """Return the candidates that wait for a person, with their evidence and their patches."""
    with reading(place) as ledger:
        entries = [entry for entry in ledger.candidates() if entry.review is Review.WAITING] if ledger else []
        return [
            {**candidate_document(ledger, entry), "diff": candidate_diff(place, entry.candidate)}
            for entry in entries
            if ledger
        ]


def review_each(place: Place, documents: Sequence[Json]) -> None:
    """Show each candidate to a person and do what the person says."""
    for number, document in enumerate(documents, 1):
        name = document["candidate"]["candidate_id"]
        print(f"\n[{number} of {len(documents)}] {visible(candidate_text(document, is_brief=True))}\n")
        show_diff(document["diff"])
        answer = _ask()
        if answer == "q":
            return
        try:
            if answer == "a":
                say(f"{name} is commit {accept(place, [name])[0]['commit'][:12]} on your branch")
            elif answer == "r":
                reject(place, [name])
                say(f"{name} is rejected; its patch is kept under a ref")
        except EvolveError as error:
            say(f"evolve: {error}")


def _ask() -> str:
    """Return a, r, s or q; the end of input is q."""
    while True:
        try:
            answer = input(QUESTION).strip().lower()[:1]
        except EOFError:
            return "q"
        if answer in ("a", "r", "s", "q"):
            return answer
