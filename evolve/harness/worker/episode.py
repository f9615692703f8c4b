"""The rules of one episode, seen from the host. Whatever a rule does comes back as a reply; nothing of it raises."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any

import orjson

from evolve.canaries import Canaries
from evolve.errors import CanaryFound, WorkerError
from evolve.harness.worker.channel import Broken, Channel
from evolve.harness.worker.replies import FaultKind, RuleDeclaration, RuleReply, replies_of
from evolve.harness.worker.tiers import Tier
from evolve.records import Json, Layer

REPLY = "a reply of the harness"
ENDED_FROM_OUTSIDE = "the zygote of all rule workers was ended from outside"


class RuleWorker:
    """One worker process holding one episode's rules, their memory and the history.

    After a crash or a hang that only killing ends, all rules are off for the rest of the episode, and each
    further call says so for each unit.
    """

    def __init__(
        self,
        channel: Channel,
        *,
        tier: Tier,
        declarations: tuple[RuleDeclaration, ...],
        load_error: str | None,
        patience_s: float,
        kill: Callable[[], None],
        is_orphaned: Callable[[], Awaitable[bool]],
        canaries: Canaries,
    ) -> None:
        self.tier = tier
        self.declarations = declarations
        self.load_error = load_error
        self._channel = channel
        self._declared = {rule.id: rule for rule in declarations}
        self._patience_s = patience_s
        self._kill = kill
        self._is_orphaned = is_orphaned
        self._canaries = canaries
        self._calls = 0
        self._off: str | None = None

    async def run(self, layer: Layer, units: Sequence[str], delta: Json) -> tuple[RuleReply, ...]:
        """Ask units of one layer in order, up to and including the first that blocks, rewrites, probes or forces.

        Args:
            layer: the layer that the units are of.
            units: ids from `declarations`, in the order in which to ask.
            delta: `steps` (the past steps since the last call of this worker), `text`, `proposed`,
                `admissible`, `steps_left`, and `probes` (answers for the first unit); see `view.delta_json`.

        Returns:
            One reply for each unit asked, passes included; the caller goes on from the next unit. A worker
            that is or gets broken gives one fault for each of `units`.

        Raises:
            ValueError: a unit is not declared in that layer.
            CanaryFound: the answer holds a canary.
            WorkerError: the worker was ended from outside, by no fault of a rule.
        """
        if any(unit not in self._declared or self._declared[unit].layer is not layer for unit in units):
            raise ValueError(f"not all of {list(units)} are rules of the {layer} layer")
        if not units:
            return ()
        if self._off is not None:
            return self._faults(units, "crashed", f"all rules are off for the episode: {self._off}")
        self._calls += 1
        message = {"id": self._calls, "units": list(units), **delta}
        try:
            line = await self._channel.ask(line_of(message), self._patience_s)
            self._canaries.refuse(line, REPLY)
            return replies_of(line, self._calls, units, self._declared)
        except Broken as broken:
            self._channel.end(broken)
            self._off = str(broken)
            if broken.kind == "crashed" and await self._is_orphaned():
                raise WorkerError(f"{broken}: {ENDED_FROM_OUTSIDE}") from None
            among = "" if len(units) == 1 else f" (one of {len(units)} rules asked together)"
            return self._faults(units, broken.kind, f"{broken}{among}")
        finally:
            if self._channel.broken is not None:
                self._kill()

    async def close(self) -> None:
        """End the worker. May be called twice."""
        self._off = self._off or "the worker was closed"
        self._kill()  # first, or the worker would wake to find that nobody listens any more
        self._channel.end(Broken("crashed", self._off))

    def _faults(self, units: Sequence[str], kind: FaultKind, text: str) -> tuple[RuleReply, ...]:
        return tuple(RuleReply.of_fault(unit, kind, text) for unit in units)


class StartingWorker:
    """A worker that is on its way in the running event loop. Either wait for it or drop it."""

    def __init__(self, start: Coroutine[Any, Any, RuleWorker]) -> None:
        self._start = asyncio.create_task(start)

    async def worker(self) -> RuleWorker:
        """Wait for the worker.

        Raises:
            WorkerError: it cannot be started.
            CanaryFound: the harness gave a canary away while it was loaded.
        """
        return await self._start

    async def drop(self) -> None:
        """End it, ready or not.

        Raises:
            CanaryFound: the harness gave a canary away while it was loaded, and nobody was told yet.
        """
        if not self._start.done():
            self._start.cancel()  # from now on it ends its worker itself, also where nobody waits for that
            await asyncio.wait({self._start})
        if self._start.cancelled():
            return
        failure = self._start.exception()
        if isinstance(failure, CanaryFound):
            raise failure
        if failure is None:
            await self._start.result().close()


def line_of(message: Json) -> bytes:
    """Encode one line for a worker. Text that is not valid Unicode and large numbers survive, by the slow way."""
    try:
        return orjson.dumps(message, option=orjson.OPT_APPEND_NEWLINE)
    except TypeError:
        return json.dumps(message).encode() + b"\n"
