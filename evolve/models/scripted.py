"""A model that says what a script says: for trying out environments and harnesses, and for tests.

    model = ScriptedModel([reply_call("look"), reply_call("take", item="key"), reply_text("done")])
    model = ScriptedModel(lambda request: reply_call("go", to=request.messages[-1]["content"]))

A function sees the request and may decide by it; it must be pure where episodes run side by side.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

import orjson

from evolve.errors import ProviderError
from evolve.models.calls import call_id, read_call
from evolve.protocols import ModelRequest
from evolve.records import Completion, ModelFingerprint, Usage

Script = Callable[[ModelRequest], Completion]

BYTES_PER_TOKEN = 4


class ScriptedModel:
    """A model whose replies are written beforehand.

    Args:
        script: a function from request to reply, or replies that are given one after the other.
        model_id: its name in the fingerprint; give two scripts two names.
        temperature: 0 makes it a greedy model, so that all trials are one episode.
        latency_s: how long each reply takes.
        fails_at: numbers of requests, from 0, that raise ProviderError instead of being answered.
    """

    def __init__(
        self,
        script: Script | Iterable[Completion],
        *,
        model_id: str = "scripted",
        temperature: float = 0.0,
        latency_s: float = 0.0,
        fails_at: Collection[int] = (),
    ) -> None:
        self._script: Script = in_order(script) if isinstance(script, Iterable) else script
        self._latency_s = latency_s
        self._fails_at = frozenset(fails_at)
        self.requests: list[ModelRequest] = []
        self.is_closed = False
        self._fingerprint = ModelFingerprint(
            model_id=model_id, endpoint="scripted", protocol="tools", sampling={"temperature": temperature}
        )

    @property
    def fingerprint(self) -> ModelFingerprint:
        """The name and the temperature that it was made with."""
        return self._fingerprint

    async def complete(self, request: ModelRequest) -> Completion:
        """Give the reply of the script. Usage is counted from lengths; calls are named after their place.

        Raises:
            ProviderError: the script says that this request fails, or has no more replies.
        """
        number = len(self.requests)
        self.requests.append(ModelRequest(list(request.messages), request.tools, request.stream, request.is_first))
        await asyncio.sleep(self._latency_s)
        if number in self._fails_at:
            raise ProviderError(f"the script lets request {number} fail")
        return _finished(self._script(request), request)

    async def close(self) -> None:
        """Note that it was closed; there is nothing to release."""
        self.is_closed = True


def reply_call(tool: str, /, **arguments: Any) -> Completion:
    """Return a reply that calls a tool."""
    call = read_call("", tool, orjson.dumps(arguments).decode())
    return Completion(text="", calls=(call,), finish_reason="tool_calls")


def reply_text(text: str) -> Completion:
    """Return a reply that is plain text."""
    return Completion(text=text)


def in_order(replies: Iterable[Completion]) -> Script:
    """Return a script that gives one reply after the other, whoever asks."""
    remaining = iter(replies)

    def script(request: ModelRequest) -> Completion:
        for reply in remaining:
            return reply
        raise ProviderError("the script has no more replies")

    return script


def by_turn(replies: Sequence[Completion]) -> Script:
    """Return a script that gives each episode the same replies; the last one is repeated."""

    def script(request: ModelRequest) -> Completion:
        turn = sum(1 for message in request.messages if message["role"] == "assistant")
        return replies[min(turn, len(replies) - 1)]

    return script


def _finished(reply: Completion, request: ModelRequest) -> Completion:
    """Return the reply with call ids and usage, where the script left them out."""
    turn = len(request.messages)
    named = tuple(
        call if call.call_id else call.model_copy(update={"call_id": call_id(turn, index)})
        for index, call in enumerate(reply.calls)
    )
    usage = reply.usage if reply.usage != Usage() else _counted(reply, request)
    return reply.model_copy(update={"calls": named, "usage": usage})


def _counted(reply: Completion, request: ModelRequest) -> Usage:
    asked = len(orjson.dumps([request.messages, request.tools]))
    written = len(reply.text) + sum(len(call.tool) + len(call.arguments_text) for call in reply.calls)
    return Usage(prompt_tokens=asked // BYTES_PER_TOKEN, completion_tokens=written // BYTES_PER_TOKEN + 1)
