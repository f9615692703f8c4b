"""Completions at rest, and the model that is asked only what nobody asked before."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evolve.errors import BudgetSpent, ProviderError, StoreError
from evolve.models.budget import Budget
from evolve.models.cache import CompletionCache, request_key
from evolve.models.cached import CachedModel
from evolve.models.scripted import ScriptedModel, reply_call, reply_text
from evolve.models.settings import Price
from evolve.protocols import ModelRequest
from evolve.records import Completion, Usage

HELLO: list[dict[str, Any]] = [{"role": "user", "content": "hello"}]


def reads_so_far() -> int:
    """Return how often this process has asked the kernel to read."""
    told = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(told["syscr"])


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[CompletionCache]:
    """An empty cache in a folder of its own."""
    with CompletionCache(tmp_path / "c.jsonl") as opened:
        yield opened


def asking(text: str, stream: str = "") -> ModelRequest:
    return ModelRequest([{"role": "user", "content": text}], [], stream)


def echo(request: ModelRequest) -> Completion:
    return reply_text(request.messages[-1]["content"].upper())


def test_equal_requests_are_asked_once(cache: CompletionCache) -> None:
    """The second episode gets the first one's completion, and only the first counts as having asked."""
    model = ScriptedModel(echo)
    cached = CachedModel(model, cache)

    async def story() -> None:
        first = await cached.complete(asking("hi"), owner="a")
        second = await cached.complete(asking("hi"), owner="b")
        assert (first.is_asked, second.is_asked) == (True, False)
        assert first.completion == second.completion
        assert first.key == second.key

    asyncio.run(story())
    assert len(model.requests) == 1


def test_resumed_episode_counts_as_an_undisturbed_one(tmp_path: Path) -> None:
    """An episode that was interrupted finds its own completions and still counts as having asked for them."""
    with CompletionCache(tmp_path / "c.jsonl") as cache:
        asyncio.run(CachedModel(ScriptedModel(echo), cache).complete(asking("hi"), owner="a"))
    model = ScriptedModel(echo)
    with CompletionCache(tmp_path / "c.jsonl") as cache:
        again = asyncio.run(CachedModel(model, cache).complete(asking("hi"), owner="a"))
    assert again.is_asked
    assert model.requests == []


def test_completion_survives_the_file_unchanged(tmp_path: Path) -> None:
    """Calls, usage, costs and malformed replies read back as they were written."""
    usage = Usage(prompt_tokens=5, completion_tokens=2, cost_usd=0.25)
    written = [
        reply_call("go", to="désk 1").model_copy(update={"usage": usage}),
        Completion(text="", malformed="did not parse", finish_reason="malformed"),
    ]
    with CompletionCache(tmp_path / "c.jsonl") as cache:
        for number, completion in enumerate(written):
            cache.put(str(number), "a", completion)
    with CompletionCache(tmp_path / "c.jsonl") as cache:
        assert list(cache.entries()) == [("0", written[0]), ("1", written[1])]


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel counts reads on Linux")
def test_a_file_is_read_in_large_pieces(tmp_path: Path) -> None:
    """Opening a cache of some hundred kilobytes takes a few reads, not one for each byte."""
    with CompletionCache(tmp_path / "c.jsonl") as cache:
        for number in range(200):
            cache.put(f"{number:064x}", "a", reply_text("x" * 2_000))
    before = reads_so_far()
    with CompletionCache(tmp_path / "c.jsonl") as again:
        assert len(again) == 200
    assert reads_so_far() - before < 200


@pytest.mark.parametrize(
    "changed",
    [
        ModelRequest([{"role": "user", "content": "hello "}], []),
        ModelRequest(HELLO, [{"type": "function"}]),
        ModelRequest(HELLO, [], "task/1"),
    ],
)
def test_key_covers_all_that_the_model_is_asked(changed: ModelRequest) -> None:
    """Messages, tools and stream are part of the key; which model it is, too."""
    assert request_key("m", changed) != request_key("m", ModelRequest(HELLO, []))
    assert request_key("m", changed) != request_key("n", changed)


def test_first_mark_is_no_part_of_the_key() -> None:
    """Whether a request is the first that an episode asks does not change what is asked."""
    assert request_key("m", ModelRequest(HELLO, [], is_first=True)) == request_key("m", ModelRequest(HELLO, []))


def test_concurrent_equal_requests_are_asked_once(cache: CompletionCache) -> None:
    """Two episodes that wait for the same request share one call; the one that came first owns it."""
    model = ScriptedModel(echo, latency_s=0.02)
    cached = CachedModel(model, cache)

    async def story() -> list[bool]:
        answers = await asyncio.gather(*(cached.complete(asking("hi"), owner=name) for name in "abc"))
        return [answer.is_asked for answer in answers]

    assert asyncio.run(story()) == [True, False, False]
    assert len(model.requests) == 1


def test_failure_reaches_all_who_wait_and_is_not_stored(cache: CompletionCache) -> None:
    """When the one call fails both episodes get the error, and the next attempt asks again."""
    model = ScriptedModel(echo, latency_s=0.02, fails_at={0})
    cached = CachedModel(model, cache)

    async def story() -> None:
        failed = await asyncio.gather(
            *(cached.complete(asking("hi"), owner=name) for name in "ab"), return_exceptions=True
        )
        assert [type(error) for error in failed] == [ProviderError, ProviderError]
        assert (await cached.complete(asking("hi"), owner="b")).is_asked

    asyncio.run(story())
    assert len(model.requests) == 2


def test_cancelled_episode_does_not_cancel_the_request(cache: CompletionCache) -> None:
    """When the episode that asked is cancelled, the answer is kept and those who wait for it get it."""
    cached = CachedModel(ScriptedModel(echo, latency_s=0.05), cache)

    async def story() -> str:
        first = asyncio.create_task(cached.complete(asking("hi"), owner="a"))
        second = asyncio.create_task(cached.complete(asking("hi"), owner="b"))
        await asyncio.sleep(0.01)
        first.cancel()
        return (await second).completion.text

    assert asyncio.run(story()) == "HI"


def test_a_request_that_is_cancelled_before_it_begins_keeps_nobody_waiting(cache: CompletionCache) -> None:
    """Who waits for it is cancelled too, and the same request asked again is asked."""
    cached = CachedModel(ScriptedModel(echo), cache)

    async def story() -> str:
        waiting = asyncio.create_task(cached.complete(asking("hi"), owner="a"))
        await asyncio.sleep(0)
        (request,) = asyncio.all_tasks() - {waiting, asyncio.current_task()}
        request.cancel()
        async with asyncio.timeout(5):
            with pytest.raises(asyncio.CancelledError):
                await waiting
            return (await cached.complete(asking("hi"), owner="b")).completion.text

    assert asyncio.run(story()) == "HI"


def test_close_ends_requests_under_way(cache: CompletionCache) -> None:
    """Closing gives a slow endpoint a moment and no more, and closes the model."""
    model = ScriptedModel(echo, latency_s=60.0)
    cached = CachedModel(model, cache, grace_s=0.05)

    async def story() -> None:
        waiting = asyncio.create_task(cached.complete(asking("hi"), owner="a"))
        await asyncio.sleep(0.01)
        await cached.close()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    asyncio.run(asyncio.wait_for(story(), timeout=5))
    assert model.is_closed


def test_close_takes_the_answers_that_are_on_their_way(cache: CompletionCache) -> None:
    """What is asked and paid for when a run ends is kept, so that its resume does not ask it again."""
    cached = CachedModel(ScriptedModel(echo, latency_s=0.05), cache)

    async def story() -> None:
        asking_still = asyncio.create_task(cached.complete(asking("hi"), owner="a"))
        await asyncio.sleep(0.01)
        asking_still.cancel()
        await cached.close()

    asyncio.run(story())
    assert len(cache) == 1


def filled(path: Path) -> list[bytes]:
    """Write three completions and return the lines of the file."""
    with CompletionCache(path) as cache:
        for number in range(3):
            cache.put(f"key{number}", "a", reply_text(str(number)))
    return path.read_bytes().splitlines(keepends=True)


@pytest.mark.parametrize("tail", [b'{"key":"key2","ow', b"\0" * 40 + b"\n", b'{"key":"key2"}\n'])
def test_torn_last_line_is_dropped(tmp_path: Path, tail: bytes, caplog: pytest.LogCaptureFixture) -> None:
    """A last line that a crash tore is warned of and dropped; the next completion takes its place."""
    path = tmp_path / "c.jsonl"
    lines = filled(path)
    path.write_bytes(b"".join(lines[:2]) + tail)
    with CompletionCache(path) as cache:
        assert [key for key, _ in cache.entries()] == ["key0", "key1"]
        assert "line (3)" in caplog.text
        cache.put("key2", "a", reply_text("2"))
    assert path.read_bytes().splitlines(keepends=True) == lines


def test_torn_middle_line_names_its_place(tmp_path: Path) -> None:
    """Damage that no crash explains is an error that names file and line, and the file stays as it is."""
    path = tmp_path / "c.jsonl"
    lines = filled(path)
    path.write_bytes(lines[0] + lines[1][:20] + b"\n" + lines[2])
    before = path.read_bytes()
    with pytest.raises(StoreError, match=r"c\.jsonl, line 2 "):
        CompletionCache(path)
    assert path.read_bytes() == before


def test_first_completion_of_a_key_stays(tmp_path: Path) -> None:
    """Storing a key again changes neither the completion, nor its owner, nor the file."""
    path = tmp_path / "c.jsonl"
    with CompletionCache(path) as cache:
        cache.put("k", "a", reply_text("one"))
        size = path.stat().st_size
        assert cache.put("k", "b", reply_text("two")).owner == "a"
        assert path.stat().st_size == size


KILLED = """
import sys, time
from pathlib import Path
from evolve.models.cache import CompletionCache
from evolve.models.scripted import reply_text
cache = CompletionCache(Path(sys.argv[1]))
cache.put("k", "a", reply_text("kept"))
print("stored", flush=True)
time.sleep(60)
"""


def test_completion_survives_kill_9(tmp_path: Path) -> None:
    """What was stored before a `kill -9` is there afterwards, without a close."""
    path = tmp_path / "c.jsonl"
    with subprocess.Popen([sys.executable, "-c", KILLED, str(path)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"stored\n"
        os.kill(process.pid, signal.SIGKILL)
    with CompletionCache(path) as cache:
        stored = cache.get("k")
    assert stored is not None
    assert stored.completion.text == "kept"


def test_budget_counts_only_what_is_asked(cache: CompletionCache) -> None:
    """A reused completion costs nothing; one that is asked costs what the endpoint reported."""
    budget = Budget(tokens=10_000)
    cached = CachedModel(ScriptedModel(echo), cache, budget=budget)
    first = asyncio.run(cached.complete(asking("hi"), owner="a"))
    assert budget.spent == first.completion.usage
    asyncio.run(cached.complete(asking("hi"), owner="b"))
    assert budget.spent == first.completion.usage


def test_spent_budget_stops_before_the_request(cache: CompletionCache) -> None:
    """A request that could exceed the budget is not sent, and those already stored still answer."""
    model = ScriptedModel(echo)
    price = Price(prompt=0.0, cached=0.0, completion=1.0)
    asyncio.run(CachedModel(model, cache).complete(asking("hi"), owner="a"))
    poor = CachedModel(model, cache, budget=Budget(usd=0.0001), price=price)
    with pytest.raises(BudgetSpent, match=r"0\.0001 USD"):
        asyncio.run(poor.complete(asking("more"), owner="a"))
    assert asyncio.run(poor.complete(asking("hi"), owner="a")).completion.text == "HI"
    assert len(model.requests) == 1


def test_failed_request_gives_its_reservation_back(cache: CompletionCache) -> None:
    """Infrastructure failures do not use up the budget."""
    budget = Budget(tokens=1200)
    model = ScriptedModel(echo, fails_at={0, 1})
    cached = CachedModel(model, cache, budget=budget)
    for _ in range(2):
        with pytest.raises(ProviderError):
            asyncio.run(cached.complete(asking("hi"), owner="a"))
    assert budget.spent == Usage()
    assert asyncio.run(cached.complete(asking("hi"), owner="a")).is_asked
