"""What ledger, repository and traces say of one run, read when it is asked for.

Guard and held-out traces are never opened: of those folds the ledger's numbers alone are used.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from evolve.errors import HarnessError, RepositoryError
from evolve.harness.artifact import read_harness
from evolve.harness.runtime import HarnessRuntime
from evolve.loop.context import INCUMBENT
from evolve.records import Decision, Episode, Split, Strength, Tool
from evolve.repository import Repository, harness_folder
from evolve.store import CandidateEntry, EpisodeEntry, Purpose, RunEntry
from evolve.traces import Traces

if TYPE_CHECKING:
    from evolve.store.ledger import Ledger


@dataclass(frozen=True)
class Source:
    """What the ledger, the repository and the traces say of one run."""

    ledger: Ledger
    repository: Repository
    traces: Traces
    run: RunEntry
    tools: Sequence[Tool]

    @cached_property
    def entries(self) -> list[EpisodeEntry]:
        """All episodes of the run, guard ones included: numbers only."""
        return self.ledger.episodes(self.run.run_id)

    @cached_property
    def candidates(self) -> dict[int, CandidateEntry]:
        """The candidates by number, which is that of their iteration."""
        return {entry.candidate.number: entry for entry in self.ledger.candidates(self.run.run_id)}

    @cached_property
    def training_tasks(self) -> frozenset[str]:
        """The tasks that a report may name."""
        return frozenset(entry.task_id for entry in self.entries if entry.split is Split.TRAIN)

    def scored_episodes(self) -> Iterator[Episode]:
        """Read the traces of all scored training episodes, one after the other: together they may be gigabytes."""
        return self.episodes_of(e for e in self.entries if e.split is Split.TRAIN and e.status == "done")

    def episodes_of(self, entries: Iterable[EpisodeEntry]) -> Iterator[Episode]:
        """Read the traces of some episodes, one after the other."""
        return (self.traces.read(entry.trace_path, entry.trace_offset) for entry in entries)

    @cached_property
    def baseline_entries(self) -> list[EpisodeEntry]:
        """The training episodes that proposals were made from, of all incumbents."""
        known = self.ledger.episodes(self.run.run_id, arm=INCUMBENT, purpose=Purpose.BASELINE)
        return [entry for entry in known if entry.split is Split.TRAIN]

    @cached_property
    def numbers(self) -> range:
        """The numbers of the iterations: with a candidate, with patterns alone, or with nothing left to mend."""
        *earlier, final = self._incumbents
        has_more = final in {entry.harness for entry in self.baseline_entries} - set(earlier)
        return range(1, len(earlier) + 1 + has_more)

    @cached_property
    def rivals(self) -> dict[str, str]:
        """The digest of the incumbent that each candidate's active harness was measured against."""
        found = {
            self._digest_at(entry.candidate.commit): self.incumbent_digest(number)
            for number, entry in self.candidates.items()
        }
        return {digest: rival for digest, rival in found.items() if digest is not None and rival is not None}

    def incumbent_digest(self, number: int) -> str | None:
        """Return the digest of the active harness that an iteration began with."""
        return self._incumbents[number - 1]

    @cached_property
    def _incumbents(self) -> list[str | None]:
        """The digests of the incumbents of all iterations, and of the one that the run ended with."""
        found = [self._digest_at(self.run.base_commit)]
        for number in range(1, max(self._named, default=0) + 1):
            entry = self.candidates.get(number)
            is_accepted = entry is not None and entry.verdict is not None and entry.verdict.decision is Decision.ACCEPT
            found.append(self._digest_at(entry.candidate.commit) if entry and is_accepted else found[-1])
        return found

    @cached_property
    def _named(self) -> set[int]:
        """The iterations that have a candidate or patterns."""
        return {*self.candidates, *(entry.iteration for entry in self.ledger.patterns(self.run.run_id))}

    def _digest_at(self, commit: str) -> str | None:
        """Return the digest under which episodes of a commit's harness are kept; None where it does not read."""
        settings = self.run.config["harness"]
        try:
            harness = read_harness(self.repository.read_files(commit, harness_folder(self.run.environment)))
        except (RepositoryError, HarnessError):
            return None
        return HarnessRuntime(harness, None, cap=Strength(settings["cap"]), off=frozenset(settings["off"])).digest
