"""Against a real HTTP endpoint: what is sent, what is read, and whose fault a failure is."""

import asyncio
import logging
import socket
import time
from collections.abc import Coroutine
from typing import Any

import pytest
from http_endpoint import Endpoint, Json, Reply, chat, serving

from evolve.errors import ProviderError
from evolve.models.openai import OpenAIModel
from evolve.models.settings import ModelSettings, Price
from evolve.protocols import ModelRequest
from evolve.records import Completion

KEY = "a-key-of-no-value"
ENVIRON = {"TEST_KEY": KEY}
HELLO: list[Json] = [{"role": "user", "content": "hello"}]
TOOLS: list[Json] = [{"type": "function", "function": {"name": "look", "description": "", "parameters": {}}}]


def settings(url: str, **changes: Any) -> ModelSettings:
    return ModelSettings(id="m", base_url=url, api_key_env="TEST_KEY", retries=1, timeout_s=5).model_copy(
        update=changes
    )


async def ask(endpoint: Endpoint, request: ModelRequest | None = None, **changes: Any) -> Completion:
    model = OpenAIModel(settings(endpoint.url, **changes), environ=ENVIRON)
    try:
        return await model.complete(request or ModelRequest(HELLO, TOOLS))
    finally:
        await model.close()


def answer_to(*replies: Reply | Json, **changes: Any) -> tuple[Completion, Endpoint]:
    async def story() -> tuple[Completion, Endpoint]:
        async with serving(*replies) as endpoint:
            return await ask(endpoint, **changes), endpoint

    return asyncio.run(story())


def failure_of(story: Coroutine[Any, Any, Any]) -> str:
    with pytest.raises(ProviderError) as caught:
        asyncio.run(story)
    return str(caught.value)


async def failing(*replies: Reply | Json, **changes: Any) -> None:
    async with serving(*replies) as endpoint:
        await ask(endpoint, **changes)


def test_text_calls_and_usage_are_read() -> None:
    """A completion holds the text, the calls in their own words, cached tokens and the price."""
    reply = chat(
        "I look.",
        [("look", '{"at": "desk"}'), ("look", "{broken")],
        prompt_tokens=1000,
        completion_tokens=100,
        prompt_tokens_details={"cached_tokens": 400},
    )
    completion, _ = answer_to(reply, price=Price(prompt=1.0, cached=0.1, completion=2.0))
    assert completion.text == "I look."
    assert [(call.tool, call.arguments, call.arguments_text) for call in completion.calls] == [
        ("look", {"at": "desk"}, '{"at": "desk"}'),
        ("look", None, "{broken"),
    ]
    usage = completion.usage
    assert (usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens) == (1000, 400, 100)
    assert usage.cost_usd == pytest.approx((600 * 1.0 + 400 * 0.1 + 100 * 2.0) / 1e6)


def test_equal_replies_are_equal_completions() -> None:
    """Call ids that an endpoint draws at random do not reach the completion."""
    other = chat(None, [("look", "{}")])
    other["choices"][0]["message"]["tool_calls"][0]["id"] = "another"
    assert answer_to(chat(None, [("look", "{}")]))[0] == answer_to(other)[0]


def test_request_carries_what_the_fingerprint_records() -> None:
    """Sampling, extra fields, messages and tools are sent as they stand; the key goes into the header only."""
    changes: Json = {"temperature": 0.5, "seed": 7, "extra_body": {"min_p": 0.1}, "tool_choice": "required"}
    completion, endpoint = answer_to(chat("ok"), **changes)
    assert completion.text == "ok"
    assert endpoint.bodies == [
        {
            "model": "m",
            "messages": HELLO,
            "tools": TOOLS,
            "tool_choice": "required",
            "temperature": 0.5,
            "top_p": 1.0,
            "seed": 7,
            "max_tokens": 1024,
            "min_p": 0.1,
        }
    ]
    assert endpoint.headers[0]["Authorization"] == f"Bearer {KEY}"
    sampling = OpenAIModel(settings(endpoint.url, **changes)).fingerprint.sampling
    assert sampling["extra_body"] == {"min_p": 0.1}
    assert (sampling["temperature"], sampling["seed"], sampling["tool_choice"]) == (0.5, 7, "required")


def test_fields_set_to_none_are_not_sent() -> None:
    """Endpoints that refuse temperature, top_p or seed are not sent them, and the limit goes under its other name."""
    _, endpoint = answer_to(
        chat("ok"), temperature=None, top_p=None, seed=None, max_tokens_field="max_completion_tokens"
    )
    assert endpoint.bodies[0].keys() == {"model", "messages", "tools", "max_completion_tokens"}


def test_each_stream_has_its_own_seed() -> None:
    """A sampled request's seed depends on its stream, and on nothing else."""

    async def seeds() -> list[int]:
        async with serving(chat("ok")) as endpoint:
            for stream in ("t1/0", "t1/1", "t1/0"):
                await ask(endpoint, ModelRequest(HELLO, [], stream), temperature=1.0)
            return [body["seed"] for body in endpoint.bodies]

    first, second, again = asyncio.run(seeds())
    assert first == again != second
    assert 0 <= min(first, second) <= max(first, second) < 2**31


def test_rate_limit_is_waited_out() -> None:
    """A 429 is asked again after the time that Retry-After names."""
    started = time.monotonic()
    completion, endpoint = answer_to(Reply({"error": {"message": "slow"}}, 429, {"Retry-After": "0.2"}), chat("ok"))
    assert completion.text == "ok"
    assert len(endpoint.bodies) == 2
    assert time.monotonic() - started >= 0.2


def test_server_error_is_asked_again() -> None:
    """A 500 that says nothing of the model's output is the endpoint's failure, and another attempt mends it."""
    completion, endpoint = answer_to(
        Reply({"error": {"message": "out of memory", "type": "server_error"}}, 500), chat("ok")
    )
    assert completion.text == "ok"
    assert len(endpoint.bodies) == 2


def test_attempts_come_to_an_end() -> None:
    """After its retries a failing endpoint is a ProviderError that says what it answered, where and how often."""
    message = failure_of(failing(Reply({"error": {"message": "boom"}}, 503, {"Retry-After": "0"}), retries=2))
    assert "HTTP 503: boom" in message
    assert "http://127.0.0.1:" in message
    assert "3 attempts" in message


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (500, {"message": "The model produced output that does not match the expected peg-native format"}),
        (400, {"message": "Failed to call a function.", "code": "tool_use_failed", "failed_generation": "<look>"}),
    ],
)
def test_unparsable_call_is_the_models_failure(status: int, error: Json) -> None:
    """An endpoint that could not parse the model's call gives a malformed completion, and is asked once."""
    completion, endpoint = answer_to(Reply({"error": error}, status))
    assert completion.malformed == error["message"]
    assert completion.text == error.get("failed_generation", "")
    assert completion.calls == ()
    assert len(endpoint.bodies) == 1


@pytest.mark.parametrize(
    "error",
    [
        {"message": "too long", "code": "context_length_exceeded"},
        {"message": "request (9031 tokens) exceeds", "code": 400, "type": "exceed_context_size_error"},
    ],
)
def test_full_context_is_an_answer(error: Json) -> None:
    """A prompt that is too long ends the episode, not the run."""
    completion, _ = answer_to(Reply({"error": error}, 400))
    assert (completion.finish_reason, completion.text, completion.malformed) == ("context_full", "", None)


def test_other_refusals_are_final() -> None:
    """A request that the endpoint refuses is not repeated."""

    async def story() -> int:
        async with serving(Reply({"error": {"message": "no such model"}}, 404)) as endpoint:
            with pytest.raises(ProviderError, match="no such model"):
                await ask(endpoint)
            return len(endpoint.bodies)

    assert asyncio.run(story()) == 1


def test_slow_endpoint_is_given_up() -> None:
    """An attempt that takes longer than timeout_s fails, and the message names the limit."""
    message = failure_of(failing(Reply(chat("late"), delay_s=5.0), timeout_s=0.1, retries=0))
    assert "did not answer within 0.1 s (timeout_s)" in message


def test_slow_answer_is_asked_again() -> None:
    """A timeout is worth another attempt."""
    completion, _ = answer_to(Reply(chat("late"), delay_s=20.0), chat("ok"), timeout_s=2.0)
    assert completion.text == "ok"


@pytest.mark.parametrize(
    "body", ["{not json", '"a string"', "[]", '{"error": {"message": "upstream"}}', '{"choices": []}']
)
def test_answer_that_is_no_completion_is_the_endpoints_failure(body: str) -> None:
    """Whatever is no chat completion is a ProviderError, whatever its status says."""
    assert "model 'm' at http://127.0.0.1:" in failure_of(failing(Reply(body), retries=0))


def test_missing_key_names_its_variable() -> None:
    """Without a key nothing is sent, and the message names the environment variable to set."""

    async def story() -> None:
        async with serving(chat("ok")) as endpoint:
            await OpenAIModel(settings(endpoint.url), environ={}).complete(ModelRequest(HELLO, []))

    assert "set the environment variable TEST_KEY" in failure_of(story())


def test_refused_key_names_its_variable_and_not_the_key() -> None:
    """A 401 tells which variable the key came from; the key itself is in no message."""
    message = failure_of(failing(Reply({"error": {"message": "bad key"}}, 401)))
    assert "environment variable TEST_KEY" in message
    assert KEY not in message


def test_unreachable_endpoint_names_its_url() -> None:
    """A port where nobody listens is a ProviderError that names the URL and what to look at."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    message = failure_of(ask(Endpoint([], url), retries=0))
    assert f"{url} cannot be reached" in message
    assert "base_url" in message


def test_key_is_in_no_repr_and_no_log(caplog: pytest.LogCaptureFixture) -> None:
    """Neither the model's repr nor the log at its finest level shows the key."""
    caplog.set_level(logging.DEBUG)
    _, endpoint = answer_to(chat("ok"))
    assert KEY not in repr(OpenAIModel(settings(endpoint.url), environ=ENVIRON))
    assert KEY not in caplog.text


def test_url_with_a_password_is_refused() -> None:
    """Credentials do not get into fingerprints by way of the URL."""
    with pytest.raises(ValueError, match="api_key_env"):
        ModelSettings(base_url="https://me:secret@host/v1")


def test_many_requests_are_under_way_at_once() -> None:
    """No pool limit of the client stands between two hundred episodes and their endpoint."""

    async def story() -> int:
        async with serving(Reply(chat("ok"), waits_for=200)) as endpoint:
            model = OpenAIModel(settings(endpoint.url, timeout_s=60.0), environ=ENVIRON)
            await asyncio.gather(*(model.complete(ModelRequest(HELLO, [], str(n))) for n in range(200)))
            await model.close()
            return endpoint.most_under_way

    assert asyncio.run(story()) == 200
