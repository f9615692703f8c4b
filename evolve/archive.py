"""Keeps finished episodes: the trace file first, then its row in the ledger. Finds them again by id.

All calls run on one thread of its own, so that the ledger has one writer and the event loop never waits for a disk.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar

from evolve.errors import CanaryFound, StoreError
from evolve.records import Episode
from evolve.store import EpisodeUse, Purpose
from evolve.traces import Line, Place, Traces

if TYPE_CHECKING:
    from evolve.store.ledger import Ledger

T = TypeVar("T")
Enter: TypeAlias = "Callable[[Ledger, Sequence[EpisodeUse]], None]"

WRITTEN_TOGETHER = 16
"""Episodes of one transaction at most: their lines are all in memory until it is over."""


@dataclass
class _Waiting:
    """An episode that is to be written; the future is done when it is on the disk."""

    episode: Episode
    arm: str
    purpose: Purpose
    enter: Enter
    written: asyncio.Future[None]
    refused: CanaryFound | None = None

    def at(self, place: Place) -> EpisodeUse:
        """Return what the ledger notes of it."""
        return EpisodeUse(self.episode, *place, self.arm, self.purpose)


class Archive:
    """Episodes by id, each written once however often a run is killed and resumed."""

    def __init__(self, ledger: Ledger, traces: Traces) -> None:
        self._ledger = ledger
        self._traces = traces
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="archive")
        self._queue: list[_Waiting] = []
        self._writer: asyncio.Task[None] | None = None

    def of_run(self, run_id: str) -> RunArchive:
        """Return the archive as one run uses it."""
        return RunArchive(self, run_id)

    def of_look(self, look_id: str) -> LookArchive:
        """Return the archive as one look at the held-out tasks uses it."""
        return LookArchive(self, look_id)

    async def close(self) -> None:
        """Finish what is queued and end the thread."""
        try:
            if self._writer is not None:
                await self._writer
        finally:  # also where all is cancelled: the ledger is closed next, and must not be under the thread's hands
            self._thread.shutdown(wait=True)

    async def find(self, episode_ids: Sequence[str]) -> dict[str, Episode]:
        """Return those of the episodes that are on record as done; errored ones are not."""
        return await self._on_thread(lambda: dict(self._find(episode_ids)))

    async def write(self, episode: Episode, *, arm: str, purpose: Purpose, enter: Enter) -> None:
        """Write the trace, then its row. Episodes that end while others are being written are written together.

        Raises:
            CanaryFound: this episode holds a canary; it is not written.
        """
        waiting = _Waiting(episode, arm, purpose, enter, asyncio.get_running_loop().create_future())
        self._queue.append(waiting)
        if self._writer is None:
            self._writer = asyncio.create_task(self._write_queue())
        await waiting.written

    async def enter_known(self, episodes: Sequence[Episode], *, arm: str, purpose: Purpose, enter: Enter) -> None:
        """Write rows for episodes whose traces are on record."""
        await self._on_thread(lambda: self._enter_known(episodes, arm, purpose, enter))

    async def _write_queue(self) -> None:
        try:
            while self._queue:
                batch, self._queue = self._queue[:WRITTEN_TOGETHER], self._queue[WRITTEN_TOGETHER:]
                await self._write_batch(batch)
        finally:
            self._writer = None

    async def _write_batch(self, batch: Sequence[_Waiting]) -> None:
        """Write a batch and tell each episode's waiter how it went."""
        failure: Exception | None = None
        try:
            await self._on_thread(lambda: self._enter_new(batch))
        except Exception as error:  # told to all who wait, and raised there
            failure = error
        for waiting in batch:
            wrong = waiting.refused or failure
            if not waiting.written.done():
                waiting.written.set_result(None) if wrong is None else waiting.written.set_exception(wrong)

    def _enter_new(self, batch: Sequence[_Waiting]) -> None:
        fit = [(waiting, line) for waiting in batch if (line := self._line_of(waiting)) is not None]
        places = self._traces.append_lines([line for _, line in fit])
        by_enter: dict[Enter, list[EpisodeUse]] = {}
        for (waiting, _), place in zip(fit, places, strict=True):
            by_enter.setdefault(waiting.enter, []).append(waiting.at(place))
        with self._ledger.together():
            for enter, uses in by_enter.items():
                enter(self._ledger, uses)

    def _line_of(self, waiting: _Waiting) -> Line | None:
        """Return the line to write; None where there is a canary in it, which is no matter of its neighbours."""
        try:
            return self._traces.line_of(waiting.episode)
        except CanaryFound as found:
            waiting.refused = found
            return None

    def _find(self, episode_ids: Sequence[str]) -> Iterator[tuple[str, Episode]]:
        scores = self._ledger.scores(episode_ids)
        for name, place in self._ledger.places(episode_ids).items():
            episode = self._traces.read(*place)
            told = (episode.score.value if episode.score else None, episode.is_success)
            if episode.episode_id != name or scores[name] != told:
                where = f"trace {place[0]}, byte {place[1]}"
                raise StoreError(f"{where}, and the ledger do not agree on episode {name}; restore both from a copy")
            yield name, episode

    def _enter_known(self, episodes: Sequence[Episode], arm: str, purpose: Purpose, enter: Enter) -> None:
        places = self._ledger.places([episode.episode_id for episode in episodes], with_errors=True)
        known = [episode for episode in episodes if episode.episode_id in places]
        if known:
            enter(self._ledger, [EpisodeUse(e, *places[e.episode_id], arm, purpose) for e in known])

    async def _on_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)


class Keeper(Protocol):
    """What a roll-out needs of an archive."""

    async def find(self, episode_ids: Sequence[str]) -> dict[str, Episode]:
        """Return those of the episodes that are on record as done."""

    async def record(self, episode: Episode, *, arm: str, purpose: Purpose) -> None:
        """Write an episode down; a second time changes nothing."""

    async def link(self, episodes: Sequence[Episode], *, arm: str, purpose: Purpose) -> None:
        """Note that an arm used episodes that are on record."""


class RunArchive:
    """Episodes of a run, each linked to the arms that used it."""

    def __init__(self, archive: Archive, run_id: str) -> None:
        self._archive = archive
        self._run_id = run_id

    async def find(self, episode_ids: Sequence[str]) -> dict[str, Episode]:
        """Return those of the episodes that are on record as done, from this run or an earlier one."""
        return await self._archive.find(episode_ids)

    async def record(self, episode: Episode, *, arm: str, purpose: Purpose) -> None:
        """Write an episode down and link it to the run."""
        await self._archive.write(episode, arm=arm, purpose=purpose, enter=self._enter)

    async def link(self, episodes: Sequence[Episode], *, arm: str, purpose: Purpose) -> None:
        """Link episodes that are on record to an arm of the run."""
        await self._archive.enter_known(episodes, arm=arm, purpose=purpose, enter=self._enter)

    def _enter(self, ledger: Ledger, uses: Sequence[EpisodeUse]) -> None:
        ledger.record_episodes(uses, run_id=self._run_id)


class LookArchive:
    """Held-out episodes, each linked to the look that it belongs to and to no run."""

    def __init__(self, archive: Archive, look_id: str) -> None:
        self._archive = archive
        self._look_id = look_id

    async def find(self, episode_ids: Sequence[str]) -> dict[str, Episode]:
        """Return those of the episodes that are on record as done, from this look or an earlier one."""
        return await self._archive.find(episode_ids)

    async def record(self, episode: Episode, *, arm: str, purpose: Purpose) -> None:
        """Write an episode down under the look; arms are told apart by their harness."""
        await self._archive.write(episode, arm=arm, purpose=purpose, enter=self._enter)

    async def link(self, episodes: Sequence[Episode], *, arm: str, purpose: Purpose) -> None:
        """Link episodes that are on record to the look."""
        await self._archive.enter_known(episodes, arm=arm, purpose=purpose, enter=self._enter)

    def _enter(self, ledger: Ledger, uses: Sequence[EpisodeUse]) -> None:
        ledger.record_look_episodes(uses, look_id=self._look_id)
