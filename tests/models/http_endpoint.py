"""A real HTTP endpoint on loopback that answers as a test tells it to."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

Json = dict[str, Any]


def chat(content: str | None = None, calls: list[tuple[str, str]] | None = None, **usage: Any) -> Json:
    """Return a chat completion as endpoints write it."""
    message: Json = {"role": "assistant", "content": content}
    if calls:
        message["tool_calls"] = [
            {"id": f"random{n}", "type": "function", "function": {"name": name, "arguments": arguments}}
            for n, (name, arguments) in enumerate(calls)
        ]
    return {
        "id": "x",
        "object": "chat.completion",
        "created": 0,
        "model": "m",
        "choices": [{"index": 0, "finish_reason": "tool_calls" if calls else "stop", "message": message}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12} | usage,
    }


@dataclass
class Reply:
    """One answer of the endpoint."""

    body: Any  # a function makes it of what was sent
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    delay_s: float = 0.0
    waits_for: int = 0  # holds its answer until so many requests are under way, or 30 s


@dataclass
class Endpoint:
    """What the endpoint will answer, one reply after the other (the last repeats), and what it was sent."""

    replies: list[Reply]
    url: str = ""
    bodies: list[Json] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    under_way: int = 0
    most_under_way: int = 0

    async def answer(self, request: web.Request) -> web.Response:
        sent = await request.json()
        reply = self.replies[min(len(self.bodies), len(self.replies) - 1)]
        self.bodies.append(sent)
        self.headers.append(dict(request.headers))
        self.under_way += 1
        self.most_under_way = max(self.under_way, self.most_under_way)
        await asyncio.sleep(reply.delay_s)
        await self._company(reply.waits_for)
        self.under_way -= 1
        body = reply.body(sent) if callable(reply.body) else reply.body
        text = body if isinstance(body, str) else json.dumps(body)
        return web.Response(text=text, status=reply.status, headers=reply.headers, content_type="application/json")

    async def _company(self, wanted: int) -> None:
        for _ in range(3000):
            if self.most_under_way >= wanted:
                return
            await asyncio.sleep(0.01)


@asynccontextmanager
async def serving(*replies: Reply | Json) -> AsyncIterator[Endpoint]:
    """Serve the replies on a free port of loopback."""
    endpoint = Endpoint([reply if isinstance(reply, Reply) else Reply(reply) for reply in replies])
    application = web.Application(client_max_size=10**8)
    application.router.add_post("/v1/chat/completions", endpoint.answer)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    endpoint.url = f"http://{host}:{port}/v1"
    try:
        yield endpoint
    finally:
        await runner.cleanup()
