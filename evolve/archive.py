"""Keeps finished episodes: the trace file first, then its row in the ledger. Finds them again by id.

All calls run on one thread of its own, so that the ledger has one writer and the event loop never waits for a disk.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from evolve.records import Episode
from evolve.store import Ledger, Purpose
from evolve.traces import Traces

T = TypeVar("T")


class Archive:
    """Episodes by id, each written once however often a run is killed and resumed."""

    def __init__(self, ledger: Ledger, traces: Traces) -> None:
        self._ledger = ledger
        self._traces = traces
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="archive")

    async def find(self, episode_ids: Sequence[str]) -> dict[str, Episode]:
        """Return those of the episodes that are on record as done; errored ones are not."""
        return await self._on_thread(lambda: dict(self._find(episode_ids)))

    async def record(self, episode: Episode, *, run_id: str, arm: str, purpose: Purpose) -> None:
        """Write an episode down and link it to the run; a second time changes nothing."""
        await self._on_thread(lambda: self._record(episode, run_id=run_id, arm=arm, purpose=purpose))

    async def link(self, episodes: Sequence[Episode], *, run_id: str, arm: str, purpose: Purpose) -> None:
        """Link episodes that are on record to an arm of the run that uses them again."""
        await self._on_thread(lambda: self._link(episodes, run_id=run_id, arm=arm, purpose=purpose))

    def close(self) -> None:
        """Finish what is queued and end the thread."""
        self._thread.shutdown(wait=True)

    def _find(self, episode_ids: Sequence[str]) -> Iterator[tuple[str, Episode]]:
        for name in episode_ids:
            row = self._ledger.episode_row(name)
            if row is not None and row.status == "done":
                yield name, self._traces.read(row.trace_path, row.trace_offset)

    def _record(self, episode: Episode, *, run_id: str, arm: str, purpose: Purpose) -> None:
        place = self._traces.append(episode)
        self._ledger.record_episode(episode, place.path, place.offset, run_id=run_id, arm=arm, purpose=purpose)

    def _link(self, episodes: Sequence[Episode], *, run_id: str, arm: str, purpose: Purpose) -> None:
        for episode in episodes:
            row = self._ledger.episode_row(episode.episode_id)
            if row is not None:
                self._ledger.record_episode(
                    episode, row.trace_path, row.trace_offset, run_id=run_id, arm=arm, purpose=purpose
                )

    async def _on_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)
