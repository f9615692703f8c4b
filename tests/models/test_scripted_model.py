"""The shipped test double."""

import asyncio
import time

import pytest

from evolve.errors import ProviderError
from evolve.models.scripted import ScriptedModel, by_turn, reply_call, reply_text
from evolve.protocols import ModelRequest

USER = {"role": "user", "content": "hi"}


def test_replies_come_in_order_and_end() -> None:
    """A list of replies is given one after the other; after the last one the model fails."""
    model = ScriptedModel([reply_call("look"), reply_text("done")])
    first, second = (asyncio.run(model.complete(ModelRequest([USER], []))) for _ in range(2))
    assert (first.calls[0].tool, first.calls[0].arguments, second.text) == ("look", {}, "done")
    with pytest.raises(ProviderError, match="no more replies"):
        asyncio.run(model.complete(ModelRequest([USER], [])))


def test_function_sees_the_request() -> None:
    """A function decides by the messages; what was asked can be looked up afterwards."""
    model = ScriptedModel(lambda request: reply_text(request.messages[0]["content"] * 2))
    messages = [USER]
    assert asyncio.run(model.complete(ModelRequest(messages, []))).text == "hihi"
    messages.append({"role": "assistant", "content": "later"})
    assert [request.messages for request in model.requests] == [[USER]]


def test_by_turn_serves_episodes_side_by_side() -> None:
    """Each episode gets the replies from the first one on, whatever others ask meanwhile."""
    model = ScriptedModel(by_turn([reply_text("one"), reply_text("two")]))
    said = {"role": "assistant", "content": ""}
    turns = [[USER], [USER], [USER, said, USER], [USER, said, USER, said, USER]]
    texts = [asyncio.run(model.complete(ModelRequest(messages, []))).text for messages in turns]
    assert texts == ["one", "one", "two", "two"]


def test_failures_come_where_the_script_says() -> None:
    """A flaky endpoint fails at the named requests and answers the others, without using up their replies."""
    model = ScriptedModel([reply_text("ok")], fails_at={0})
    with pytest.raises(ProviderError, match="request 0"):
        asyncio.run(model.complete(ModelRequest([USER], [])))
    assert asyncio.run(model.complete(ModelRequest([USER], []))).text == "ok"


def test_usage_follows_from_lengths() -> None:
    """Equal requests report equal usage, and longer ones report more."""
    model = ScriptedModel(lambda _: reply_text("ok"))
    short, again, long = (asyncio.run(model.complete(ModelRequest([USER] * n, []))).usage for n in (1, 1, 9))
    assert short == again
    assert long.prompt_tokens > short.prompt_tokens > 0
    assert short.completion_tokens > 0


def test_calls_are_named_by_their_place() -> None:
    """Call ids are nine letters and digits, equal for equal places and different within an episode."""
    model = ScriptedModel(lambda _: reply_call("look"))
    ids = [asyncio.run(model.complete(ModelRequest([USER] * n, []))).calls[0].call_id for n in (1, 3, 1)]
    assert ids[0] == ids[2] != ids[1]
    assert all(len(name) == 9 and name.isalnum() for name in ids)


def test_latency_is_waited() -> None:
    """A scripted latency takes its time."""
    model = ScriptedModel(lambda _: reply_text("ok"), latency_s=0.1)

    async def story() -> float:
        started = time.monotonic()
        await asyncio.gather(*(model.complete(ModelRequest([USER], [])) for _ in range(10)))
        return time.monotonic() - started

    assert asyncio.run(story()) >= 0.1


def test_temperature_decides_whether_trials_differ() -> None:
    """A script is a greedy model unless it says otherwise."""
    assert ScriptedModel([]).fingerprint.is_greedy
    assert not ScriptedModel([], temperature=0.7).fingerprint.is_greedy
