"""Lends children to sessions: one session has one child at a time, and a child is replaced before it grows too big."""

from __future__ import annotations

from pathlib import Path
from threading import Lock

from evolve.environments.children.child import Child


class ChildPool:
    """Children of one program. May be used from many threads; there is no bound on how many are out at once.

    Args:
        program: what a child runs; see `Child`.
        recycle_after: how many sessions a child serves before it is replaced.
        idle_limit: how many children without a session are kept warm.
    """

    def __init__(self, program: Path, *, recycle_after: int = 50, idle_limit: int = 4) -> None:
        self._program = program
        self._recycle_after = recycle_after
        self._idle_limit = idle_limit
        self._idle: list[Child] = []
        self._lock = Lock()

    def take(self) -> Child:
        """Return a child for one session: a warm one, else a new one."""
        child = self._warm() or Child(self._program)
        child.served += 1
        return child

    def give_back(self, child: Child) -> None:
        """Take a child back when its session is over; one that is broken, still asked or used up is ended."""
        if child.is_alive and not child.is_asked and child.served < self._recycle_after:
            with self._lock:
                if len(self._idle) < self._idle_limit:
                    self._idle.append(child)
                    return
        child.end()

    def close(self) -> None:
        """End the idle children. Not calling it is no leak: a child that nobody holds is killed."""
        with self._lock:
            idle, self._idle = self._idle, []
        for child in idle:
            child.end()

    def _warm(self) -> Child | None:
        """Return an idle child that still lives, the latest first: its pages are in memory."""
        while True:
            with self._lock:
                if not self._idle:
                    return None
                child = self._idle.pop()
            if child.is_alive:
                return child
            child.end()
