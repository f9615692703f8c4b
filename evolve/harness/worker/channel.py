"""The host's end of one worker's socket: a line out, a line in, each under a deadline and a size limit.

What comes in was written by an untrusted process. After the first irregularity the channel is broken for good.
"""

from __future__ import annotations

import asyncio
from typing import Literal, cast

MAX_REPLY_BYTES = 2**20
READ_BYTES = 16 * 1024

BreakKind = Literal["timeout", "nonsense", "crashed"]


class Broken(Exception):
    """The worker hung, died or broke the protocol; nothing more will come from it."""

    def __init__(self, kind: BreakKind, message: str) -> None:
        super().__init__(message)
        self.kind: BreakKind = kind


class Channel(asyncio.BufferedProtocol):
    """One request at a time: `ask` and `hear` may not overlap.

    Reads into one small buffer of its own: the default way of asyncio reserves 256 KiB for each read, which
    costs more than the call.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._space = bytearray(READ_BYTES)
        self._buffer = bytearray()
        self._waiter: asyncio.Future[bytes] | None = None
        self.broken: Broken | None = None

    async def ask(self, line: bytes, timeout_s: float) -> bytes:
        """Send a line and return the answer.

        Raises:
            Broken: no regular answer came in time.
        """
        if self.broken is None and self._transport is not None:
            self._transport.write(line)
        return await self.hear(timeout_s)

    async def hear(self, timeout_s: float) -> bytes:
        """Return the next line.

        Raises:
            Broken: no regular line came in time.
        """
        if self.broken is not None:
            raise self.broken
        self._waiter = self._loop.create_future()
        deadline = self._loop.call_later(timeout_s, self.end, Broken("timeout", f"no answer within {timeout_s} s"))
        try:
            return await self._waiter
        except asyncio.CancelledError:
            self.end(Broken("crashed", "the call was cancelled"))
            raise
        finally:
            deadline.cancel()
            self._waiter = None

    def end(self, why: Broken) -> None:
        """Break the channel: whoever waits gets `why`, and so does everyone after."""
        if self.broken is None:
            self.broken = why
            self._buffer.clear()
            if self._waiter is not None and not self._waiter.done():
                self._waiter.set_exception(why)
            if self._transport is not None:
                self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = cast(asyncio.Transport, transport)

    def get_buffer(self, sizehint: int) -> bytearray:
        """Return where to read to."""
        return self._space

    def buffer_updated(self, nbytes: int) -> None:
        """Take bytes of the one line that is expected."""
        if self._waiter is None or self._waiter.done():
            return self.end(Broken("nonsense", "the worker wrote without being asked"))
        self._buffer += memoryview(self._space)[:nbytes]
        if len(self._buffer) > MAX_REPLY_BYTES:
            return self.end(Broken("nonsense", f"an answer of more than {MAX_REPLY_BYTES} bytes"))
        line, end, rest = self._buffer.partition(b"\n")
        if not end:
            return None
        if rest:
            return self.end(Broken("nonsense", "more than one answer to one question"))
        self._buffer.clear()
        self._waiter.set_result(bytes(line))
        return None

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell whoever waits that the worker died."""
        self.end(Broken("crashed", "the worker died"))
