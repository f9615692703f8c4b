"""Keeps finished episodes: the trace file first, then its row in the ledger. Finds them again by id.

All calls run on one thread of its own, so that the ledger has one writer and the event loop never waits for a disk.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol, TypeVar

from evolve.errors import StoreError
from evolve.records import Episode
from evolve.store import Ledger, Purpose
from evolve.traces import Place, Traces

T = TypeVar("T")
Enter = Callable[[Ledger, Episode, Place], None]


@dataclass(frozen=True)
class _Waiting:
    """An episode that is to be written; the future is done when it is on the disk."""

    episode: Episode
    enter: Enter
    written: asyncio.Future[None]


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
        if self._writer is not None:
            await self._writer
        self._thread.shutdown(wait=True)

    async def find(self, episode_ids: Sequence[str]) -> dict[str, Episode]:
        """Return those of the episodes that are on record as done; errored ones are not."""
        return await self._on_thread(lambda: dict(self._find(episode_ids)))

    async def write(self, episode: Episode, enter: Enter) -> None:
        """Write the trace, then its row. Episodes that end while others are being written are written together."""
        waiting = _Waiting(episode, enter, asyncio.get_running_loop().create_future())
        self._queue.append(waiting)
        if self._writer is None:
            self._writer = asyncio.create_task(self._write_queue())
        await waiting.written

    async def enter_known(self, episodes: Sequence[Episode], enter: Enter) -> None:
        """Write rows for episodes whose traces are on record."""
        await self._on_thread(lambda: self._enter_known(episodes, enter))

    async def _write_queue(self) -> None:
        try:
            while self._queue:
                batch, self._queue = self._queue, []
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
            if not waiting.written.done():
                waiting.written.set_result(None) if failure is None else waiting.written.set_exception(failure)

    def _enter_new(self, batch: Sequence[_Waiting]) -> None:
        places = [self._traces.append(waiting.episode) for waiting in batch]
        with self._ledger.together():
            for waiting, place in zip(batch, places, strict=True):
                waiting.enter(self._ledger, waiting.episode, place)

    def _find(self, episode_ids: Sequence[str]) -> Iterator[tuple[str, Episode]]:
        scores = self._ledger.scores(episode_ids)
        for name, place in self._ledger.places(episode_ids).items():
            episode = self._traces.read(*place)
            told = (episode.score.value if episode.score else None, episode.is_success)
            if episode.episode_id != name or scores[name] != told:
                where = f"trace {place[0]}, byte {place[1]}"
                raise StoreError(f"{where}, and the ledger do not agree on episode {name}; restore both from a copy")
            yield name, episode

    def _enter_known(self, episodes: Sequence[Episode], enter: Enter) -> None:
        with self._ledger.together():
            for episode in episodes:
                row = self._ledger.episode_row(episode.episode_id)
                if row is not None:
                    enter(self._ledger, episode, Place(row.trace_path, row.trace_offset))

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
        await self._archive.write(episode, self._enter(arm, purpose))

    async def link(self, episodes: Sequence[Episode], *, arm: str, purpose: Purpose) -> None:
        """Link episodes that are on record to an arm of the run."""
        await self._archive.enter_known(episodes, self._enter(arm, purpose))

    def _enter(self, arm: str, purpose: Purpose) -> Enter:
        return lambda ledger, episode, place: ledger.record_episode(
            episode, *place, run_id=self._run_id, arm=arm, purpose=purpose
        )


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
        await self._archive.write(episode, self._enter)

    async def link(self, episodes: Sequence[Episode], *, arm: str, purpose: Purpose) -> None:
        """Link episodes that are on record to the look."""
        await self._archive.enter_known(episodes, self._enter)

    def _enter(self, ledger: Ledger, episode: Episode, place: Place) -> None:
        ledger.record_look_episode(episode, *place, look_id=self._look_id)
