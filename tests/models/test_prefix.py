"""How prefixes are kept, beside an HTTP server that plays the four questions that llama.cpp is asked."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from evolve.errors import ProviderError
from evolve.models.prefix import PrefixKeeper
from evolve.protocols import ModelRequest

TOOL = {"type": "function", "function": {"name": "look"}}


class Slots:
    """One slot: what it holds, what was asked, and what is refused."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.holds = ""
        self.asked: list[str] = []
        self.refused: set[str] = set()

    def answer(self, path: str, body: dict[str, Any]) -> dict[str, Any] | None:
        self.asked.append(path)
        if path in self.refused:
            return None
        if path == "/apply-template":
            return {"prompt": json.dumps(body)}
        if path == "/completion":
            assert (body["n_predict"], body["cache_prompt"]) == (0, False)
            self.holds = body["prompt"]
            return {"tokens_evaluated": len(self.holds)}
        file = self.folder / body["filename"]
        if path.endswith("save"):
            file.write_text(self.holds)
        else:
            self.holds = file.read_text()
        return {"id_slot": 0}


@pytest.fixture
def slots(tmp_path: Path) -> Iterator[tuple[Slots, str]]:
    playing = Slots(tmp_path)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            told = playing.answer(self.path, json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(500 if told is None else 200)
            self.end_headers()
            self.wfile.write(json.dumps(told).encode())

        def log_message(self, *words: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield playing, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def keeping(url: str, folder: Path, story: Callable[[PrefixKeeper], Awaitable[Any]]) -> Any:
    async def told() -> Any:
        keeper = PrefixKeeper(url, folder, timeout_s=5.0)
        try:
            return await story(keeper)
        finally:
            await keeper.close()

    return asyncio.run(told())


def request(system: str = "", user: str = "hello", tools: bool = True) -> ModelRequest:
    head = [{"role": "system", "content": system}] if system else []
    return ModelRequest([*head, {"role": "user", "content": user}], [TOOL] if tools else [])


def test_what_was_read_once_is_put_back(slots: tuple[Slots, str], tmp_path: Path) -> None:
    """The second episode reads nothing, and the slot holds what it held then, without a word of the first one."""
    playing, url = slots

    async def story(keeper: PrefixKeeper) -> list[str]:
        held = []
        for user in ("who", "where"):
            assert await keeper.put_back(request("be kind", user))
            held.append(playing.holds)
            playing.holds = "another conversation"
        return held

    first, again = keeping(url, tmp_path, story)
    assert first == again
    assert "be kind" in first
    assert "look" in first
    assert "who" not in first
    assert playing.asked.count("/completion") == 1


def test_the_two_prefixes_that_were_used_last_are_kept(slots: tuple[Slots, str], tmp_path: Path) -> None:
    """A third one takes the place of the one that was used longest ago, on the disk too."""
    playing, url = slots

    async def story(keeper: PrefixKeeper) -> None:
        for system in ("a", "b", "a", "c", "a"):
            assert await keeper.put_back(request(system))
            assert json.loads(playing.holds)["messages"][0]["content"] == system

    keeping(url, tmp_path, story)
    assert playing.asked.count("/completion") == 3
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("refused", ["/apply-template", "/completion", "/slots/0?action=save"])
def test_a_prefix_that_cannot_be_read_alone_is_not_tried_again(
    slots: tuple[Slots, str], tmp_path: Path, refused: str
) -> None:
    """The prompt is then read from its start, in every episode, so that all are read alike."""
    playing, url = slots
    playing.refused.add(refused)

    async def story(keeper: PrefixKeeper) -> list[bool]:
        return [await keeper.put_back(request("a", user)) for user in ("who", "where")]

    assert keeping(url, tmp_path, story) == [False, False]
    assert playing.asked.count(refused) == 1


def test_a_prompt_without_system_message_and_tools_has_no_prefix(slots: tuple[Slots, str], tmp_path: Path) -> None:
    """Nothing is asked for it."""
    playing, url = slots
    assert keeping(url, tmp_path, lambda keeper: keeper.put_back(request(tools=False))) is False
    assert playing.asked == []


def test_a_server_that_is_gone_is_an_error_of_the_provider(tmp_path: Path) -> None:
    """So the model starts another one."""
    with pytest.raises(ProviderError, match="did not answer at /apply-template"):
        keeping("http://127.0.0.1:1", tmp_path, lambda keeper: keeper.put_back(request("a")))
