"""Sealed content that came out: the candidate it came out with is put under quarantine, and the run ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from evolve.errors import CanaryFound
from evolve.loop.context import INCUMBENT, Incumbent, RunContext
from evolve.records import Candidate, Proposal
from evolve.repository import Collected
from evolve.store import Review

CLOCK_STEP_S = 1.0
"""File systems may keep times in whole seconds."""


@contextmanager
def quarantining(run: RunContext, incumbent: Incumbent, candidate: Candidate | None = None) -> Iterator[None]:
    """Put who is at fault under quarantine where the block finds a canary.

    In an episode of the incumbent that is the candidate which became the incumbent, and nobody where the run began with
    it; everywhere else it is `candidate`, where one is under test.
    """
    tested = [] if candidate is None else [candidate.candidate_id]
    try:
        yield
    except CanaryFound as found:
        names = _makers(run, incumbent.harness.digest) if found.arm == INCUMBENT else tested
        for name in names:
            run.ledger.quarantine(name, str(found))
        told = f"{', '.join(names)} is under quarantine" if names else "no candidate of this run is at fault"
        under_test = f" (candidate {tested[0]} was under test)" if tested else ""
        raise CanaryFound(f"{found}; {told}{under_test}", arm=found.arm) from found


def refuse_quarantined(run: RunContext) -> None:
    """Do nothing where no candidate of the run is under quarantine.

    Raises:
        CanaryFound: one is; a run that sealed content came out of is over.
    """
    for entry in run.ledger.candidates(run.run_id):
        if entry.review is Review.QUARANTINED:
            raise CanaryFound(
                f"run {run.run_id} is over: candidate {entry.candidate.candidate_id} is under quarantine "
                f"({entry.quarantine}); `evolve run` begins a new one once that is mended"
            )


def canary_in(run: RunContext, proposal: Proposal, collected: Collected, *, since: float) -> CanaryFound | None:
    """Look for canaries in a patch, in the names of its files, in what the proposer says of it and in what it said.

    Args:
        since: seconds since the epoch; transcripts from before are not of this candidate.
    """
    try:
        run.canaries.refuse(proposal.model_dump_json(), "the proposal")
        run.canaries.refuse("\n".join(path for path, _ in collected.refused), "the names of files in the patch")
        for path, content in collected.files.items():
            run.canaries.refuse(f"{path}\n".encode() + content, "a file of the patch")
        refuse_transcripts(run, since=since)
    except CanaryFound as found:
        return found
    return None


def refuse_transcripts(run: RunContext, *, since: float) -> None:
    """Look for canaries in what was said by the proposer since a moment, in seconds since the epoch.

    Raises:
        CanaryFound: there is one.
    """
    for path in sorted(run.workspace.transcripts.glob("*")):
        if path.is_file() and path.stat().st_mtime >= since - CLOCK_STEP_S:
            run.canaries.refuse_file(path, f"the proposer's transcript {path.name}")


def _makers(run: RunContext, harness: str) -> list[str]:
    """Return the candidates of the run that have this harness."""
    entries = run.ledger.candidates(run.run_id)
    return [entry.candidate.candidate_id for entry in entries if entry.candidate.harness == harness]
