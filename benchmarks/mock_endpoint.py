"""A chat-completions endpoint that answers every request with the same call after a fixed time. Holds no state.

    python benchmarks/mock_endpoint.py LATENCY_MS

Prints its port, then serves until its standard input closes. It parses just enough HTTP to cost next to nothing.
"""

from __future__ import annotations

import asyncio
import json
import sys

CALL = {"name": "write_line", "arguments": json.dumps({"line": "the next line of the report", "page": 1})}
MESSAGE = {"role": "assistant", "content": "", "tool_calls": [{"id": "call_a", "type": "function", "function": CALL}]}
BODY = json.dumps(
    {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": "mock",
        "choices": [{"index": 0, "finish_reason": "tool_calls", "message": MESSAGE}],
        "usage": {"prompt_tokens": 1000, "completion_tokens": 20, "total_tokens": 1020},
    }
).encode()
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (len(BODY), BODY)


class Endpoint(asyncio.Protocol):
    """One connection: reads a request to its end, answers later."""

    def __init__(self, latency_s: float) -> None:
        self._latency_s = latency_s
        self._loop = asyncio.get_running_loop()
        self._received: list[bytes] = []
        self._missing: int | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the connection."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Count bytes; the last one of a request starts the clock."""
        if self._missing is None:
            self._received.append(data)
            head, end, body = b"".join(self._received).partition(b"\r\n\r\n")
            if not end:
                return
            self._missing = content_length(head) - len(body)
        else:
            self._missing -= len(data)
        if self._missing == 0:
            self._received.clear()
            self._missing = None
            self._loop.call_later(self._latency_s, self._answer)

    def _answer(self) -> None:
        if not self._transport.is_closing():
            self._transport.write(ANSWER)


def content_length(head: bytes) -> int:
    """Return the length of the body that a head announces."""
    lines = (line.partition(b":") for line in head.lower().split(b"\r\n"))
    return next(int(value) for name, _, value in lines if name == b"content-length")


async def serve(latency_s: float) -> None:
    """Serve until standard input closes."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Endpoint(latency_s), "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)
    server.close()


if __name__ == "__main__":
    asyncio.run(serve(float(sys.argv[1]) / 1000))
