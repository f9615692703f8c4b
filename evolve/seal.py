"""The held-out seal beside the ledger: what a workspace committed itself to, what git remembers, what must agree.

It closes on doubt: a ledger that lacks what git shows, a look that was edited away, another held-out split, all of
these stop whatever would rely on them. Whoever rewrites the ledger and git together is not held by it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from evolve.errors import SealError
from evolve.figures import moment
from evolve.protocols import Environment
from evolve.records import FrozenHarness, Json, Look, digest_of
from evolve.repository import CANDIDATES, LOOKS, RUNS, Repository, look_ref, read_marks, refs_under, write_mark
from evolve.store import CommitmentEntry, LookEntry

if TYPE_CHECKING:
    from evolve.store.ledger import Ledger

_RUN_ID = re.compile(r"[A-Za-z0-9_.-]+-\d{3,}")


def require_whole(repository: Repository, ledger: Ledger) -> None:
    """Compare the ledger with what git remembers of runs, candidates and looks.

    Raises:
        SealError: git shows something that the ledger does not know, or knows otherwise.
    """
    missing = next(_unknown(repository, ledger), None)
    if missing is not None:
        raise _lost(missing)


def require_unused(repository: Repository) -> None:
    """Do nothing where git shows no run, candidate or look; to be asked where there is no ledger.

    Raises:
        SealError: it shows one, so there was a ledger.
    """
    runs = [ref for ref in refs_under(repository, RUNS) if _RUN_ID.fullmatch(ref.removeprefix(RUNS))]
    found = [*runs, *refs_under(repository, CANDIDATES, LOOKS)]
    if found:
        raise _lost(f"git has {found[0]}, and there is no ledger here (one elsewhere is named by ledger.url)")


def commit_heldout(ledger: Ledger, environment: Environment, options: Json) -> CommitmentEntry | None:
    """Commit the workspace to a held-out split, or compare it with the commitment; None where its data is not here.

    Args:
        options: of the environment, as it was made with.

    Raises:
        SealError: it is another split than the workspace committed itself to.
    """
    digest = environment.heldout_digest()
    return None if digest is None else ledger.commit_heldout(environment.card.name, options, digest)


def require_heldout(ledger: Ledger, environment: Environment, options: Json) -> None:
    """Compare the held-out split as `commit_heldout` does, and commit to nothing.

    Raises:
        SealError: as `commit_heldout`.
    """
    digest = environment.heldout_digest()
    if digest is not None:
        ledger.require_heldout(environment.card.name, options, digest)


def commitment_sentence(environment: str, commitment: CommitmentEntry | None) -> str:
    """Say which held-out split it is, for people to keep."""
    if commitment is None:
        return f"held-out tasks of {environment}: no commitment, their data is not on this machine"
    return f"held-out tasks of {environment}: committed to {commitment.digest} since {moment(commitment.made_at)}"


def require_sealed(ledger: Ledger, environment: Environment, options: Json, frozen: FrozenHarness) -> CommitmentEntry:
    """Return the commitment to the held-out split after comparing it, and the environment, with what was frozen.

    Raises:
        SealError: as `require_evaluable`.
    """
    return ledger.commit_heldout(frozen.environment, options, require_evaluable(ledger, environment, options, frozen))


def require_evaluable(ledger: Ledger, environment: Environment, options: Json, frozen: FrozenHarness) -> str:
    """Return the digest of the held-out split after comparing it, and the environment, with what was frozen.

    Raises:
        SealError: something is not as it was when the harness was frozen, or the held-out data is not here.
    """
    name = frozen.environment
    known = {entry.name: entry for entry in ledger.freezes(name)}
    if known.get(frozen.name) != frozen:
        raise SealError(
            f"the ledger does not know {frozen.name!r} of {name} as tag {frozen.tag} seals it; restore the ledger from "
            "a copy, or freeze the harness under a new name"
        )
    if frozen.manifest.get("heldout_commitment", "") is None:
        raise SealError(
            f"{frozen.name!r} of {name} was frozen where the held-out data was not, so nothing says which tasks it is "
            "for; freeze the harness here under a new name"
        )
    digest = environment.heldout_digest()
    if digest is None:
        raise SealError(f"the held-out data of {name} is not on this machine; `evolve bench fetch` says what brings it")
    ledger.require_heldout(name, options, digest)
    described = frozen.manifest.get("environment", {}).get("digest")
    _refuse_change(frozen, "the held-out tasks", frozen.manifest.get("heldout_commitment"), digest)
    _refuse_change(frozen, "code, tasks or scorer", described, environment.card.digest)
    return digest


def mark_look(repository: Repository, look: Look, heldout: str, result: Json | None = None) -> None:
    """Let git remember a look, and the digest of its result once it has one."""
    write_mark(repository, look_ref(look.look_id), _mark(look, heldout, result))


def is_untold(repository: Repository, look: Look) -> bool:
    """Return whether git remembers a look and no result of it: a kill came before anybody was told one."""
    ref = look_ref(look.look_id)
    mark = read_marks(repository, ref).get(ref)
    return mark is not None and mark.get("result") is None


def repeat_warning(look: Look) -> str:
    """Say what a further look with the same harness is worth; empty for the first."""
    if look.number == 1:
        return ""
    return (
        f"this is look {look.number} at the held-out tasks of {look.environment} with the same harness; a number that "
        "was chosen among several looks is no held-out number"
    )


def _lost(what: str) -> SealError:
    return SealError(
        f"{what}: the ledger was deleted, replaced or altered. Restore it from a copy (by default it is "
        ".evolve/ledger.sqlite; of several worktrees of a repository, one holds it); to begin anew, "
        "`evolve init` makes another workspace"
    )


def _refuse_change(frozen: FrozenHarness, what: str, then: str | None, now: str) -> None:
    if then not in (None, now):
        raise SealError(
            f"{what} of {frozen.environment} changed since {frozen.name!r} was frozen (digest {then}, now {now}); "
            "restore options, data and code, or freeze under a new name"
        )


def _mark(look: Look, heldout: str, result: Json | None) -> Json:
    closed = None if result is None else digest_of(result)
    return {"look": look.model_dump(mode="json"), "heldout": heldout, "result": closed}


def _unknown(repository: Repository, ledger: Ledger) -> Iterator[str]:
    """Yield a sentence for each thing that git shows and the ledger does not."""
    runs = {entry.run_id for entry in ledger.runs()}
    for name in (ref.removeprefix(RUNS) for ref in refs_under(repository, RUNS)):
        if _RUN_ID.fullmatch(name) and name not in runs:
            yield f"git has a branch of run {name}, which the ledger does not know"
    yield from _unknown_candidates(repository, ledger)
    looks = {entry.look.look_id: entry for entry in ledger.looks()}
    for ref, mark in read_marks(repository, LOOKS).items():
        name = ref.removeprefix(LOOKS)
        if not _agrees(mark, looks.get(name), ledger):
            yield f"git remembers {name} at held-out tasks, and the ledger does not have it like that"


def _unknown_candidates(repository: Repository, ledger: Ledger) -> Iterator[str]:
    """Pass over the one candidate that may come next: a kill may have left its ref before its row was written."""
    known: dict[str, set[int]] = {entry.run_id: set() for entry in ledger.runs()}
    for entry in ledger.candidates():
        known.setdefault(entry.candidate.run_id, set()).add(entry.candidate.number)
    for name in (ref.removeprefix(CANDIDATES) for ref in refs_under(repository, CANDIDATES)):
        run, _, number = name.rpartition("-")
        numbers = known.get(run)
        is_known = numbers is not None and number.isdigit() and int(number) in {*numbers, max(numbers, default=0) + 1}
        if not is_known:
            yield f"git keeps candidate {name}, which the ledger does not know"


def _agrees(mark: Json, entry: LookEntry | None, ledger: Ledger) -> bool:
    if entry is None or mark.get("look") != entry.look.model_dump(mode="json"):
        return False
    if mark.get("heldout") not in {known.digest for known in ledger.commitments(entry.look.environment)}:
        return False
    closed = mark.get("result")
    return closed is None or (entry.result is not None and digest_of(entry.result) == closed)
