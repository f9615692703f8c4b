"""The host's end of one worker's socket: a line out, a line in, each under a deadline and a size limit.

What comes in was written by an untrusted process. After the first irregularity the channel is broken for good.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Literal

MAX_REPLY_BYTES = 2**20
READ_BYTES = 16 * 1024

BreakKind = Literal["timeout", "nonsense", "crashed"]


class Broken(Exception):
    """The worker hung, died or broke the protocol; nothing more will come from it."""

    def __init__(self, kind: BreakKind, message: str) -> None:
        super().__init__(message)
        self.kind: BreakKind = kind


class Channel:
    """One request at a time: `ask` and `hear` may not overlap. To be made where an event loop runs.

    The loop watches the socket from the first to the last moment: to ask it anew for each call would cost more
    than the call, and to wait here for an answer would hold up all other episodes.

    Args:
        connection: our end of the socket pair.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._loop = asyncio.get_running_loop()
        self._unsent = memoryview(b"")
        self._awaits_room = False
        self._buffer = bytearray()
        self._expected: asyncio.Future[bytes] = self._loop.create_future()
        self._expected.cancel()  # nothing is expected yet
        self.broken: Broken | None = None
        connection.setblocking(False)
        self._loop.add_reader(connection.fileno(), self._receive)  # asked by a socket, it describes that in words first

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
        self._loop.remove_reader(self._connection)  # before it is closed: the next socket may get its number
        self._loop.remove_writer(self._connection)
        self._connection.close()
        if not self._expected.done():
            self._expected.set_exception(why)

    async def _exchange(self, line: bytes, timeout_s: float) -> bytes:
        if self.broken is not None:
            raise self.broken
        self._expected = self._loop.create_future()
        deadline = _Patience(self._loop, timeout_s, self._expire)
        self._unsent = memoryview(line)
        try:
            if line:
                self._send()
            return await self._expected
        except asyncio.CancelledError:
            self.end(Broken("crashed", "the call was cancelled"))
            raise
        finally:
            deadline.cancel()

    def _expire(self, timeout_s: float) -> None:
        if not self._expected.done():
            self.end(Broken("timeout", f"no answer within {timeout_s:g} s"))

    def _send(self) -> None:
        """Send what there is room for; the rest of a long line when there is more."""
        try:
            sent = self._connection.send(self._unsent)
        except BlockingIOError:
            sent = 0
        except OSError:
            self.end(Broken("crashed", "the worker died"))
            return
        self._unsent = self._unsent[sent:]
        if self._unsent:
            self._awaits_room = True
            self._loop.add_writer(self._connection, self._send)
        elif self._awaits_room:
            self._awaits_room = False
            self._loop.remove_writer(self._connection)

    def _receive(self) -> None:
        """Take what has arrived, and hand it over once it is the one line that is expected."""
        try:
            arrived = self._connection.recv(READ_BYTES)
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
    no time to answer either, has the others left.
    """

    PARTS = 10

    def __init__(self, loop: asyncio.AbstractEventLoop, timeout_s: float, expire: Callable[[float], None]) -> None:
        self._loop = loop
        self._timeout_s = timeout_s
        self._expire = expire
        self._left = self.PARTS
        self._begin_part()

    def cancel(self) -> None:
        """Wait no longer."""
        self._handle.cancel()

    def _begin_part(self) -> None:
        self._handle = self._loop.call_later(self._timeout_s / self.PARTS, self._end_part)

    def _end_part(self) -> None:
        self._left -= 1
        if self._left > 0:
            self._begin_part()
        else:
            self._expire(self._timeout_s)
