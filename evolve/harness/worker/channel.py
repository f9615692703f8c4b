"""The host's ends of one worker's pipes: a line out, a line in, each under a deadline and a size limit.

What comes in was written by an untrusted process. After the first irregularity the channel is broken for good.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Literal, NamedTuple

MAX_REPLY_BYTES = 2**20
READ_BYTES = 16 * 1024

BreakKind = Literal["timeout", "nonsense", "crashed"]


class Broken(Exception):
    """The worker hung, died or broke the protocol; nothing more will come from it."""

    def __init__(self, kind: BreakKind, message: str) -> None:
        super().__init__(message)
        self.kind: BreakKind = kind


class Pipes(NamedTuple):
    """Descriptors of our ends: what a worker says is read from `incoming`, what it is told is written to `outgoing`.

    Two pipes and no socket pair: a process that waits to read from a stream socket is woken, for nothing, whenever
    the other side takes what it wrote before, and a wake is what a call costs most of.
    """

    incoming: int
    outgoing: int

    def close(self) -> None:
        """Close both."""
        os.close(self.incoming)
        os.close(self.outgoing)


def pipes() -> tuple[Pipes, Pipes]:
    """Make two pipes and return both ends: those of one side, and those of the other.

    Raises:
        OSError: there are too many open files; none is left open.
    """
    their_incoming, outgoing = os.pipe()
    try:
        incoming, their_outgoing = os.pipe()
    except OSError:
        os.close(their_incoming)
        os.close(outgoing)
        raise
    return Pipes(incoming, outgoing), Pipes(their_incoming, their_outgoing)


class Channel:
    """One request at a time: `ask` and `hear` may not overlap. To be made where an event loop runs.

    The loop watches the pipe from the first to the last moment: to ask it anew for each call would cost more
    than the call, and to wait here for an answer would hold up all other episodes.

    Args:
        pipes: our ends; they are closed with the channel.
    """

    def __init__(self, pipes: Pipes) -> None:
        self._pipes = pipes
        self._loop = asyncio.get_running_loop()
        self._unsent = memoryview(b"")
        self._awaits_room = False
        self._buffer = bytearray()
        self._expected: asyncio.Future[bytes] = self._loop.create_future()
        self._expected.cancel()  # nothing is expected yet
        self._patience = _Patience(self._loop, self._expire)
        self.broken: Broken | None = None
        for descriptor in pipes:
            os.set_blocking(descriptor, False)
        self._loop.add_reader(pipes.incoming, self._receive)

    async def ask(self, line: bytes, timeout_s: float) -> bytes:
        """Send a line and return the answer.

        Raises:
            Broken: no regular answer came in time.
        """
        return await self._exchange(line, timeout_s)

    async def hear(self, timeout_s: float) -> bytes:
        """Return the next line.

        Raises:
            Broken: no regular line came in time.
        """
        return await self._exchange(b"", timeout_s)

    def end(self, why: Broken) -> None:
        """Break the channel: who waits, and everyone who asks from now on, gets `why`."""
        if self.broken is not None:
            return
        self.broken = why
        self._buffer.clear()
        self._patience.end()
        self._loop.remove_reader(self._pipes.incoming)  # before they are closed: the next may get their numbers
        self._watch_for_room(False)
        self._pipes.close()
        if not self._expected.done():
            self._expected.set_exception(why)

    async def _exchange(self, line: bytes, timeout_s: float) -> bytes:
        if self.broken is not None:
            raise self.broken
        self._expected = self._loop.create_future()
        self._patience.begin(timeout_s)
        self._unsent = memoryview(line)
        try:
            if line:
                self._send()
            return await self._expected
        except asyncio.CancelledError:
            self.end(Broken("crashed", "the call was cancelled"))
            raise
        finally:
            self._patience.rest()

    def _expire(self, timeout_s: float) -> None:
        if not self._expected.done():
            self.end(Broken("timeout", f"no answer within {timeout_s:g} s"))

    def _send(self) -> None:
        """Send what there is room for; the rest of a long line when there is more."""
        try:
            sent = os.write(self._pipes.outgoing, self._unsent)
        except BlockingIOError:
            sent = 0
        except OSError:
            self.end(Broken("crashed", "the worker died"))
            return
        self._unsent = self._unsent[sent:]
        self._watch_for_room(bool(self._unsent))

    def _watch_for_room(self, awaits_room: bool) -> None:
        if awaits_room and not self._awaits_room:
            self._loop.add_writer(self._pipes.outgoing, self._send)
        elif self._awaits_room and not awaits_room:
            self._loop.remove_writer(self._pipes.outgoing)
        self._awaits_room = awaits_room

    def _receive(self) -> None:
        """Take what has arrived, and hand it over once it is the one line that is expected."""
        try:
            arrived = os.read(self._pipes.incoming, READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            arrived = b""
        self._buffer += arrived
        if not arrived:
            self.end(Broken("crashed", "the worker died"))
        elif self._expected.done() or self._unsent:
            self.end(Broken("nonsense", "the worker wrote without being asked"))
        elif len(self._buffer) > MAX_REPLY_BYTES:
            self.end(Broken("nonsense", f"an answer of more than {MAX_REPLY_BYTES} bytes"))
        elif b"\n" in arrived:
            self._hand_over()

    def _hand_over(self) -> None:
        line, _, rest = self._buffer.partition(b"\n")
        if rest:
            self.end(Broken("nonsense", "more than one answer to one question"))
        else:
            self._buffer.clear()
            self._expected.set_result(bytes(line))


class _Patience:
    """A deadline in parts. However long all was paused, or the machine asleep, it costs one part: the worker, which got
    no time to answer either, has the others left. One clock ticks for all questions of a channel, since a timer for
    each would cost a good part of what asking costs; so a deadline comes up to one part late.
    """

    PARTS = 10

    def __init__(self, loop: asyncio.AbstractEventLoop, expire: Callable[[float], None]) -> None:
        self._loop = loop
        self._expire = expire
        self._timeout_s = 0.0
        self._left = 0
        self._handle: asyncio.TimerHandle | None = None

    def begin(self, timeout_s: float) -> None:
        """Wait for that long from now on."""
        self._left = self.PARTS + 1  # the first ends some time within a part
        if timeout_s != self._timeout_s:
            self._stop()
            self._timeout_s = timeout_s
            self._tick()

    def rest(self) -> None:
        """Wait for nothing."""
        self._left = 0

    def end(self) -> None:
        """Stop the clock for good, and let go of who wanted to know."""
        self._stop()
        self._expire = lambda timeout_s: None

    def _stop(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _tick(self) -> None:
        self._handle = self._loop.call_later(self._timeout_s / self.PARTS, self._end_part)

    def _end_part(self) -> None:
        self._tick()
        if self._left > 0:
            self._left -= 1
            if self._left == 0:
                self._expire(self._timeout_s)
