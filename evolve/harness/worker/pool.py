"""Starts rule workers: one zygote, one fresh worker for each episode, never below the configured isolation."""

from __future__ import annotations

import asyncio
import errno
import hashlib
from collections.abc import Mapping
from types import TracebackType
from typing import Self
from weakref import WeakSet

import orjson

from evolve.canaries import Canaries
from evolve.errors import WorkerError
from evolve.harness.worker import seatbelt
from evolve.harness.worker.channel import Broken, Channel
from evolve.harness.worker.child.orders import Kind, Layers
from evolve.harness.worker.episode import ENDED_FROM_OUTSIDE, REPLY, RuleWorker, line_of
from evolve.harness.worker.replies import RuleDeclaration, codes_of, declarations_of
from evolve.harness.worker.tiers import TIERS, Isolation, Tier
from evolve.harness.worker.zygote import Zygote
from evolve.records import Json

START_TIMEOUT_S = 20.0
STARTING_AT_ONCE = 4
"""No more than keep the zygote busy: those that start one after the other are ready one after the other."""

MAX_SOURCE_CHARS = 256 * 1024
HARNESSES_KEPT = 16
TOO_MANY_FILES = (errno.EMFILE, errno.ENFILE)


class WorkerPool:
    """Owns the zygote and restarts it where it died. Use as `async with`, or `start` and `close`.

    Args:
        minimum_tier: the weakest isolation under which rule code may run.
        call_timeout_s: processor time of one rule for one call.
        load_timeout_s: processor time for compiling the files, and again for running them.
        patience_s: wall time after which a worker that does not answer is killed; generous, because it must
            not depend on how busy the machine is whether an honest rule is cut off.
        layers: kernel layers to try; fewer than all only to show what each is good for.
        canaries: looked for in whatever a worker says.
    """

    def __init__(
        self,
        *,
        minimum_tier: Tier = "seccomp",
        call_timeout_s: float = 0.5,
        load_timeout_s: float = 2.0,
        patience_s: float = 10.0,
        layers: Layers = Layers.ALL,
        canaries: Canaries | None = None,
    ) -> None:
        if minimum_tier not in TIERS:
            raise ValueError(f"minimum_tier {minimum_tier!r} is none of {', '.join(TIERS)}")
        self._minimum_tier: Tier = minimum_tier
        self._call_timeout_s = call_timeout_s
        self._load_timeout_s = load_timeout_s
        self._patience_s = patience_s
        self._layers = layers
        self._canaries = canaries or Canaries({})
        self._zygote: Zygote | None = None
        self._isolation: Isolation | None = None
        self._channels: WeakSet[Channel] = WeakSet()
        self._is_closed = False
        self._restart = asyncio.Lock()
        self._codes: dict[str, dict[str, str] | str] = {}
        self._starting = asyncio.Semaphore(STARTING_AT_ONCE)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def isolation(self) -> Isolation:
        """What the self-test found. The pool must have been started."""
        if self._isolation is None:
            raise RuntimeError("the worker pool has not been started")
        return self._isolation

    @property
    def tier(self) -> Tier:
        """The isolation that workers really get."""
        return self.isolation.tier

    @property
    def zygote_process_id(self) -> int | None:
        """Process id of the zygote, None where none runs."""
        return self._zygote.process_id if self._zygote is not None else None

    async def start(self) -> None:
        """Start the zygote and try, from inside a worker, what a hostile rule would try.

        Raises:
            WorkerError: no worker starts, or the isolation is below the minimum.
        """
        self._is_closed = False
        try:
            self._isolation = Isolation.of(await self._self_test(), is_under_seatbelt=seatbelt.is_available())
            self._isolation.require(self._minimum_tier)
        except BaseException:
            await self.close()
            raise

    async def _self_test(self) -> Json:
        try:
            _, channel = self._fork(await self._living_zygote(), Kind.SELF_TEST, self._layers)
            try:
                report: Json = orjson.loads(await channel.hear(START_TIMEOUT_S))
            finally:
                channel.end(Broken("crashed", "the self-test is over"))
        except Broken as broken:
            raise WorkerError(f"the self-test of the rule worker failed: {broken}") from None
        return report

    async def close(self) -> None:
        """End the zygote and all workers."""
        for channel in list(self._channels):
            channel.end(Broken("crashed", "the pool of workers was closed"))
        self._is_closed = True
        if self._zygote is not None:
            zygote, self._zygote = self._zygote, None
            await zygote.close()

    async def start_episode(self, sources: Mapping[str, str], opening: Json) -> RuleWorker:
        """Start a worker and load an episode's rules into it.

        Args:
            sources: text of `action.py` and `trajectory.py`, by file name; either may be missing.
            opening: `task`, `tools` and `step_limit`; see `view.opening_json`.

        Returns:
            The worker; where the harness does not load, with `load_error` set and without declarations.

        Raises:
            WorkerError: no worker can be started.
            CanaryFound: the harness gave a canary away while it was loaded.
        """
        async with self._starting:
            zygote, number, channel = await self._ready_worker()
        try:
            loaded = await self._load(channel, sources, opening, zygote)
        except BaseException:
            channel.end(Broken("crashed", "not started"))
            zygote.end_worker(number)
            raise
        load_error = loaded if isinstance(loaded, str) else None
        worker = RuleWorker(
            channel,
            tier=self.tier,
            declarations=() if isinstance(loaded, str) else loaded,
            load_error=load_error,
            patience_s=self._patience_s,
            kill=lambda: zygote.end_worker(number),
            is_orphaned=lambda: self._is_orphaned(zygote),
            canaries=self._canaries,
        )
        if load_error is not None:
            await worker.close()
        return worker

    async def _load(
        self, channel: Channel, sources: Mapping[str, str], opening: Json, zygote: Zygote
    ) -> tuple[RuleDeclaration, ...] | str:
        for name, text in sources.items():
            if len(text) > MAX_SOURCE_CHARS:
                return f"{name}: {len(text)} characters, the most is {MAX_SOURCE_CHARS}"
        limits = {"load_cpu_s": self._load_timeout_s, "call_cpu_s": self._call_timeout_s}
        try:
            codes = await self._compiled(channel, sources, limits)
            if isinstance(codes, str):
                return codes
            rest = {} if codes else dict(sources)
            first = {"codes": codes, "sources": rest, "opening": opening, **limits}
            line = await channel.ask(line_of(first), self._patience_s)
            self._canaries.refuse(line, REPLY)
            return declarations_of(line)
        except Broken as broken:
            if broken.kind == "crashed" and await self._is_orphaned(zygote):
                raise WorkerError(f"{broken}: {ENDED_FROM_OUTSIDE}") from None
            return f"{' or '.join(sources)}: while loading: {broken}"

    async def _compiled(self, channel: Channel, sources: Mapping[str, str], limits: Json) -> dict[str, str] | str:
        """Return the code of rule files, or why they do not compile; the first worker that is given them knows.

        It compiles them before it runs any, so that no rule has a say in what the workers of other episodes run.
        """
        key = hashlib.sha256(line_of(dict(sources))).hexdigest()
        if key not in self._codes:
            line = await channel.ask(line_of({"sources": dict(sources), **limits}), self._patience_s)
            self._canaries.refuse(line, REPLY)
            self._codes[key] = codes_of(line, sources)
            for oldest in list(self._codes)[:-HARNESSES_KEPT]:
                del self._codes[oldest]
        return self._codes[key]

    async def _ready_worker(self) -> tuple[Zygote, int, Channel]:
        """Return a worker that has locked itself in; a zygote that died in the meantime is replaced once."""
        for attempt in (1, 2):
            zygote = await self._living_zygote()
            number = 0
            try:
                number, channel = self._fork(zygote, Kind.FORK, self.isolation.layers)
                word = orjson.loads(await channel.hear(START_TIMEOUT_S))
            except Broken as broken:
                zygote.end_worker(number)
                if attempt == 1 and not await self._is_usable(zygote):
                    continue
                raise WorkerError(f"a rule worker did not start: {broken}") from None
            if word != {"ready": int(self.isolation.layers)}:
                channel.end(Broken("crashed", "not isolated"))
                raise WorkerError(f"a rule worker could not be isolated as the self-test was: {word}")
            return zygote, number, channel
        raise WorkerError("a rule worker did not start, and neither did its replacement")

    async def _is_usable(self, zygote: Zygote) -> bool:
        await asyncio.sleep(0.05)  # a zygote that is being killed closes its sockets before it can be waited for
        return zygote.is_alive

    async def _is_orphaned(self, zygote: Zygote) -> bool:
        """Tell whether a worker died of its zygote's end; rules that are shut in cannot have brought that about."""
        return self.tier in ("seccomp", "seccomp+landlock") and not await self._is_usable(zygote)

    async def _living_zygote(self) -> Zygote:
        async with self._restart:
            if self._is_closed:
                raise WorkerError("the pool of rule workers was closed")
            if self._zygote is None or not self._zygote.is_alive:
                if self._zygote is not None:
                    self._zygote.kill()
                self._zygote = await Zygote.spawn()
            return self._zygote

    def _fork(self, zygote: Zygote, kind: Kind, layers: Layers) -> tuple[int, Channel]:
        try:
            number, ours = zygote.fork(kind, layers)
        except OSError as error:
            mend = "raise the limit (ulimit -n) or lower rollout.concurrency"
            why = f"{error.strerror}; {mend}" if error.errno in TOO_MANY_FILES else f"the zygote is gone: {error}"
            raise Broken("crashed", why) from None
        channel = Channel(ours)
        self._channels.add(channel)
        return number, channel
