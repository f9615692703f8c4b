"""Keeps finished episodes: the trace file first, then its row in the ledger. Finds them again by id.

All calls run on one thread of its own, so that the ledger has one writer and the event loop never waits for a disk.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from evolve.records import Episode
from evolve.store import Ledger
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
        return await self._on_thread(lambda: self._find(episode_ids))

    async def record(self, episode: Episode, *, run_id: str, arm: str, purpose: str) -> None:
        """Write an episode down and link it to the run; a second time changes nothing."""
        await self._on_thread(lambda: self._record(episode, run_id=run_id, arm=arm, purpose=purpose))

    async def link(self, episodes: Sequence[Episode], *, run_id: str, arm: str, purpose: str) -> None:
        """Link episodes that are on record already to the run that uses them again."""
        await self._on_thread(lambda: self._ledger.link_episodes([e.episode_id for e in episodes], run_id, arm, purpose))

    def close(self) -> None:
        """Finish what is queued and end the thread."""
        self._thread.shutdown(wait=True)

    def _find(self, episode_ids: Sequence[str]) -> dict[str, Episode]:
        rows = self._ledger.episode_locations(episode_ids)
        return {name: self._traces.read(path, offset) for name, (path, offset) in rows.items()}

    def _record(self, episode: Episode, *, run_id: str, arm: str, purpose: str) -> None:
        path, offset = self._traces.append(episode)
        self._ledger.record_episode(episode, path, offset, run_id, arm, purpose)

    async def _on_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)
