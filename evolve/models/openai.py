"""Any OpenAI-compatible endpoint. Sends messages as they are: nothing is copied or validated again.

What the model did wrong comes back as a completion, what the endpoint did wrong is raised; this module
is where the two are told apart.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import aiohttp
import openai
import orjson

from evolve.errors import ProviderError
from evolve.models.calls import call_id, read_call
from evolve.models.retry import Attempt, Transient
from evolve.models.settings import ModelSettings, Price
from evolve.protocols import ModelRequest
from evolve.records import Completion, Json, ModelFingerprint, Usage


class OpenAIModel:
    """A model behind an HTTP endpoint that speaks OpenAI's chat completions.

    Args:
        settings: the endpoint, the sampling and the limits.
        environ: where the key is looked up, when it is first needed.
        trusts_proxies: False for servers on this machine, which no proxy can reach.
    """

    def __init__(
        self, settings: ModelSettings, *, environ: Mapping[str, str] = os.environ, trusts_proxies: bool = True
    ) -> None:
        self._settings = settings
        self._environ = environ
        self._trusts_proxies = trusts_proxies
        self._line: Line | None = None

    def __repr__(self) -> str:
        return f"OpenAIModel({self._settings.id!r} at {self._settings.base_url})"

    @cached_property
    def fingerprint(self) -> ModelFingerprint:
        """The model's name, its URL and all that is sent beside the messages."""
        sampling = pinned_sampling(self._settings) | {"base_url": self._settings.base_url}
        return ModelFingerprint(model_id=self._settings.id, endpoint="openai", protocol="tools", sampling=sampling)

    async def complete(self, request: ModelRequest) -> Completion:
        """Answer one request.

        Raises:
            ProviderError: no completion after all attempts, or a refusal that another attempt cannot mend.
        """
        return await self.complete_with(request, {})

    async def complete_with(self, request: ModelRequest, extra: Json) -> Completion:
        """Answer one request, with further fields of the body that do not change what is asked."""
        body = orjson.dumps(request_body(self._settings, request) | extra)
        last: Transient | None = None
        for attempt in range(self._settings.retries + 1):
            if last is not None:
                await asyncio.sleep(Attempt(attempt, last.retry_after_s).delay_s)
            try:
                return await self._attempt(body, len(request.messages))
            except Transient as error:
                last = error
        attempts = f"{retries + 1} attempts" if (retries := self._settings.retries) else "the first attempt"
        raise ProviderError(f"{last}; gave up after {attempts}")

    async def close(self) -> None:
        """Close the connections."""
        if self._line is not None:
            await self._line.close()
            self._line = None

    async def _attempt(self, body: bytes, turn: int) -> Completion:
        where = f"model {self._settings.id!r} at {self._settings.base_url}"
        try:
            async with asyncio.timeout(self._settings.timeout_s):
                status, headers, answer = await self._connected().post(body)
        except TimeoutError:
            raise Transient(f"{where} did not answer within {self._settings.timeout_s:g} s (timeout_s)") from None
        except aiohttp.ClientError as error:
            raise Transient(f"{where} cannot be reached ({error}): is it up, is base_url right?") from error
        if status >= 400:
            return self._refusal(status, headers, answer, where)
        try:
            read = orjson.loads(answer)
        except orjson.JSONDecodeError as error:
            raise Transient(f"{where} did not answer with JSON ({error})") from error
        return read_completion(read, turn=turn, price=self._settings.price, where=where)

    def _connected(self) -> Line:
        if self._line is None:
            self._line = Line(self._key(), self._settings.base_url, trusts_proxies=self._trusts_proxies)
        return self._line

    def _key(self) -> str:
        name = self._settings.api_key_env
        if name is None:
            return "none"  # the SDK wants one; servers without keys ignore it
        key = self._environ.get(name, "")
        if not key:
            raise ProviderError(
                f"no key for {self._settings.base_url}: set the environment variable {name}, "
                "or name another one in the model's api_key_env"
            )
        return key

    def _refusal(self, status: int, headers: Mapping[str, str], answer: bytes, where: str) -> Completion:
        refusal = _error_in(answer)
        message = str(refusal.get("message") or answer[:500].decode(errors="replace"))
        names = (str(refusal.get("code")), str(refusal.get("type")))
        if _says(self._settings.context_markers, names, message):
            return Completion(text="", finish_reason="context_full")
        if _says(self._settings.malformed_markers, names, message):
            written = str(refusal.get("failed_generation") or "")
            return Completion(text=written, finish_reason="malformed", malformed=message)
        said = f"{where} answered HTTP {status}: {message}"
        if status in (408, 409, 429) or status >= 500:
            raise Transient(said, retry_after=headers.get("retry-after"))
        if status in (401, 403):
            said += f" (the key comes from the environment variable {self._settings.api_key_env})"
        raise ProviderError(said)


class Line:
    """The connections to one endpoint.

    Address, key and headers are the SDK's. Bodies do not take its way: it walks through messages, requests and
    answers for ten times as long as sending them takes, so bytes go straight to the transport that it uses.
    """

    def __init__(self, key: str, base_url: str, *, trusts_proxies: bool) -> None:
        client = openai.OpenAI(api_key=key, base_url=base_url)
        self._url = f"{str(client.base_url).rstrip('/')}/chat/completions"
        headers = client.auth_headers | client.default_headers
        self._session = aiohttp.ClientSession(
            headers={name: value for name, value in headers.items() if isinstance(value, str)},
            connector=aiohttp.TCPConnector(limit=0),  # how many requests are under way is the rollout's business
            timeout=aiohttp.ClientTimeout(total=None),  # each attempt has one limit for all of it
            trust_env=trusts_proxies,
        )
        client.close()

    async def post(self, body: bytes) -> tuple[int, Mapping[str, str], bytes]:
        """Send a request and return status, headers and body of what comes back."""
        async with self._session.post(self._url, data=body) as answer:
            return answer.status, answer.headers, await answer.read()

    async def close(self) -> None:
        """Close the connections."""
        await self._session.close()


def pinned_sampling(settings: ModelSettings) -> Json:
    """Return all that is sent beside messages and tools, as the fingerprint records it."""
    sent = {"temperature": settings.temperature, "top_p": settings.top_p, "seed": settings.seed}
    pinned: Json = {name: value for name, value in sent.items() if value is not None}
    pinned[settings.max_tokens_field] = settings.max_tokens
    if settings.tool_choice != "auto":
        pinned["tool_choice"] = settings.tool_choice
    if settings.extra_body:
        pinned["extra_body"] = settings.extra_body
    return pinned


def request_body(settings: ModelSettings, request: ModelRequest) -> Json:
    """Return the body of a request. The messages and tools in it are the caller's own lists."""
    body = pinned_sampling(settings) | {"model": settings.id, "messages": request.messages}
    body |= body.pop("extra_body", {})
    if request.tools:
        body["tools"] = request.tools
    else:
        body.pop("tool_choice", None)
    if request.stream and settings.seed is not None:
        body["seed"] = stream_seed(settings.seed, request.stream)
    return body


def stream_seed(seed: int, stream: str) -> int:
    """Return the seed of one random stream: 31 bits, since some endpoints take no more."""
    return int.from_bytes(hashlib.sha256(f"{seed}:{stream}".encode()).digest()[:4], "big") >> 1


def read_completion(answer: Any, *, turn: int, price: Price | None, where: str) -> Completion:
    """Read an endpoint's answer.

    Args:
        answer: the body as JSON, whatever it is.
        turn: messages in the request; calls are named after it, so that equal replies are equal bytes.
        price: None where costs are unknown.
        where: model and URL, for messages.

    Raises:
        Transient: the answer is no chat completion.
    """
    try:
        choice = answer["choices"][0]
        message = choice["message"]
        functions = [call["function"] for call in message.get("tool_calls") or ()]
        return Completion(
            text=message.get("content") or "",
            calls=tuple(
                read_call(call_id(turn, index), function["name"], function["arguments"])
                for index, function in enumerate(functions)
            ),
            usage=read_usage(answer.get("usage") or {}, price),
            finish_reason=choice.get("finish_reason") or "stop",
        )
    except (AttributeError, TypeError, LookupError, ValueError) as error:
        raise Transient(f"{where} answered with something that is no chat completion: {str(answer)[:300]}") from error


def read_usage(reported: Json, price: Price | None) -> Usage:
    """Return the usage that an endpoint reported, with its cost where the price is known."""
    details = reported.get("prompt_tokens_details") or {}
    usage = Usage(
        prompt_tokens=reported.get("prompt_tokens") or 0,
        cached_tokens=details.get("cached_tokens") or 0,
        completion_tokens=reported.get("completion_tokens") or 0,
    )
    return usage if price is None else usage.model_copy(update={"cost_usd": price.cost_usd(usage)})


def _says(markers: tuple[str, ...], names: tuple[str, ...], message: str) -> bool:
    return any(marker in names or marker in message for marker in markers)


def _error_in(answer: bytes) -> Json:
    """Return the error object of a refusal; empty where the endpoint has another form."""
    try:
        read = orjson.loads(answer)
    except orjson.JSONDecodeError:
        return {}
    error = read.get("error") if isinstance(read, dict) else None
    return error if isinstance(error, dict) else read if isinstance(read, dict) else {}
