"""The host's end of one worker's socket: a line out, a line in, each under a deadline and a size limit.

What comes in was written by an untrusted process. After the first irregularity the channel is broken for good.
"""

from __future__ import annotations

import asyncio
import socket
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
        connection: our end of the socket pair; None where there is no worker.
    """

    def __init__(self, connection: socket.socket | None) -> None:
        self._connection = connection
        self._loop = asyncio.get_running_loop()
        self._buffer = bytearray()
        self._expected: asyncio.Future[bytes] | None = None
        self.broken: Broken | None = None
        if connection is not None:
            connection.setblocking(False)
            self._loop.add_reader(connection, self._arrived)

    async def ask(self, line: bytes, timeout_s: float) -> bytes:
        """Send a line and return the answer.

        Raises:
            Broken: no regular answer came in time.
        """
        await self._send(self._living(), line, timeout_s)
        return await self.hear(timeout_s)

    async def hear(self, timeout_s: float) -> bytes:
        """Return the next line.

        Raises:
            Broken: no regular line came in time.
        """
        self._living()
        self._expected = self._loop.create_future()
        deadline = self._loop.call_later(timeout_s, self._break, "timeout", f"no answer within {timeout_s} s")
        try:
            return await self._expected
        except asyncio.CancelledError:
            self.end(Broken("crashed", "the call was cancelled"))
            raise
        finally:
            deadline.cancel()
            self._expected = None

    def end(self, why: Broken) -> None:
        """Break the channel: everyone who asks from now on gets `why`."""
        if self.broken is None:
            self.broken = why
            self._buffer.clear()
            if self._connection is not None:
                self._loop.remove_reader(self._connection)
                self._connection.close()
            if self._expected is not None and not self._expected.done():
                self._expected.set_exception(why)

    def _break(self, kind: BreakKind, message: str) -> Broken:
        why = Broken(kind, message)
        self.end(why)
        return why

    def _living(self) -> socket.socket:
        if self.broken is not None:
            raise self.broken
        assert self._connection is not None
        return self._connection

    async def _send(self, connection: socket.socket, line: bytes, timeout_s: float) -> None:
        """Send a line; a long one waits for room."""
        try:
            sent = connection.send(line)
            if sent < len(line):
                async with asyncio.timeout(timeout_s):
                    await asyncio.get_running_loop().sock_sendall(connection, line[sent:])
        except TimeoutError:
            raise self._break("timeout", f"no room for a question within {timeout_s} s") from None
        except OSError:
            raise self._break("crashed", "the worker died") from None

    def _arrived(self) -> None:
        """Take what the worker wrote, and hand it over once it is the one line that is expected."""
        try:
            line = self._take()
        except Broken:
            return
        if line is None:
            return
        if self._expected is None or self._expected.done():
            self._break("nonsense", "the worker wrote without being asked")
        else:
            self._expected.set_result(line)

    def _take(self) -> bytes | None:
        """Return the line that has arrived, or None while it is not whole."""
        while self._receive():
            if len(self._buffer) > MAX_REPLY_BYTES:
                raise self._break("nonsense", f"an answer of more than {MAX_REPLY_BYTES} bytes")
            if self._buffer.endswith(b"\n"):
                break
        line, end, rest = self._buffer.partition(b"\n")
        if not end:
            return None
        if rest:
            raise self._break("nonsense", "more than one answer to one question")
        self._buffer.clear()
        return bytes(line)

    def _receive(self) -> int:
        """Take what has arrived and return how much that was."""
        assert self._connection is not None
        try:
            arrived = self._connection.recv(READ_BYTES)
        except BlockingIOError:
            return 0
        except OSError:
            arrived = b""
        if not arrived:
            raise self._break("crashed", "the worker died")
        self._buffer += arrived
        return len(arrived)
