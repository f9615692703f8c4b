"""A GGUF file served in a child process. The tests with a real model need EVOLVE_TEST_GGUF."""

import asyncio
import importlib.util
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from evolve.errors import ConfigError, ProviderError
from evolve.models.local import LocalModel
from evolve.models.settings import ModelSettings
from evolve.protocols import ModelRequest

GGUF = os.environ.get("EVOLVE_TEST_GGUF", "")
needs_gguf = pytest.mark.skipif(not GGUF, reason="EVOLVE_TEST_GGUF names no GGUF file")
needs_runtime = pytest.mark.skipif(
    importlib.util.find_spec("xllamacpp") is None, reason="the extra [local] is not installed"
)

TOOL = {
    "type": "function",
    "function": {"name": "look", "description": "Look around.", "parameters": {"type": "object", "properties": {}}},
}
SYSTEM = {"role": "system", "content": "You are a friendly assistant who answers in one short sentence."}
USER = {"role": "user", "content": "Where is the mug?"}


def settings(**changes: Any) -> ModelSettings:
    fields: dict[str, Any] = {"kind": "local", "path": GGUF, "threads": 1, "context": 1024, "max_tokens": 8}
    return ModelSettings.model_validate(fields | changes)


def played(story: Callable[[LocalModel], Awaitable[Any]], **changes: Any) -> Any:
    async def play() -> Any:
        model = LocalModel(settings(**changes))
        try:
            return await story(model)
        finally:
            await model.close()

    return asyncio.run(play())


def test_missing_file_is_named(tmp_path: Path) -> None:
    """A weights file that is not there is a configuration error."""
    with pytest.raises(ConfigError, match=r"absent\.gguf"):
        LocalModel(settings(path=tmp_path / "absent.gguf"))


def test_missing_template_is_named(tmp_path: Path) -> None:
    """A chat template that is not there is a configuration error."""
    (tmp_path / "w.gguf").write_bytes(b"x")
    with pytest.raises(ConfigError, match=r"chat_template names .*absent\.jinja"):
        LocalModel(settings(path=tmp_path / "w.gguf", chat_template=tmp_path / "absent.jinja"))


WITHOUT_RUNTIME = """
import importlib.util, sys
find_spec = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "xllamacpp" else find_spec(name, *rest)
from evolve.models.local import LocalModel
from evolve.models.settings import ModelSettings
LocalModel(ModelSettings(kind="local", path=sys.argv[1]))
"""


def test_missing_runtime_names_the_command(tmp_path: Path) -> None:
    """Without the extra the error gives the command that installs it."""
    (tmp_path / "w.gguf").write_bytes(b"x")
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_RUNTIME, str(tmp_path / "w.gguf")], capture_output=True, text=True
    )
    assert "ConfigError" in done.stderr
    assert "pip install 'evolve-harness[local]'" in done.stderr


@needs_runtime
def test_fingerprint_covers_weights_template_and_runtime(tmp_path: Path) -> None:
    """Other weights, another template or other sampling make another model; the number of threads does not."""
    weights, template = tmp_path / "w.gguf", tmp_path / "t.jinja"
    template.write_text("{{ messages }}")

    def digest(content: bytes, **changes: Any) -> str:
        weights.write_bytes(content)
        environ = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
        return LocalModel(settings(path=weights, **changes), environ=environ).fingerprint.digest

    plain = digest(b"one")
    assert digest(b"one", threads=2, nice=5) == plain
    others = [
        digest(b"three"),
        digest(b"one", chat_template=template),
        digest(b"one", tool_choice="required"),
        digest(b"one", context=2048),
        digest(b"one", temperature=0.5),
    ]
    assert len({plain, *others}) == 6


@needs_runtime
def test_file_that_is_no_model_is_a_provider_error(tmp_path: Path) -> None:
    """A server that does not start says so, with the runtime's last words, and leaves no process behind."""
    path = tmp_path / "nonsense.gguf"
    path.write_bytes(b"nonsense")

    async def story(model: LocalModel) -> None:
        await model.complete(ModelRequest([USER], []))

    with pytest.raises(ProviderError, match=r"did not start with .*nonsense\.gguf: .*Failed to init server"):
        played(story, path=path)


@needs_gguf
def test_model_answers_and_counts_tokens() -> None:
    """A real model gives text and usage through the same code as a remote one."""

    async def story(model: LocalModel) -> Any:
        return await model.complete(ModelRequest([SYSTEM, USER], [], is_first=True))

    completion = played(story)
    assert completion.text
    assert completion.usage.prompt_tokens > 10
    assert completion.usage.completion_tokens == 8


@needs_gguf
@pytest.mark.parametrize("mode", ["exact", "prefix"])
def test_episodes_repeat_bit_for_bit(mode: str) -> None:
    """An episode gives the same completions whatever was served before it, also after a restart."""

    async def episode(model: LocalModel) -> list[str]:
        messages = [SYSTEM, USER]
        texts = []
        for turn in range(3):
            completion = await model.complete(ModelRequest(messages, [], is_first=turn == 0))
            texts.append(completion.text)
            messages += [{"role": "assistant", "content": completion.text}, {"role": "user", "content": "And then?"}]
        return texts

    async def story(model: LocalModel) -> list[list[str]]:
        first = await episode(model)
        await model.complete(ModelRequest([SYSTEM, {"role": "user", "content": "Where is the pen?"}], []))
        return [first, await episode(model)]

    first, again = played(story, max_tokens=24, prompt_cache=mode)
    assert first == again == played(episode, max_tokens=24, prompt_cache=mode)


@needs_gguf
def test_continued_conversation_is_read_from_the_cache() -> None:
    """The second request of an episode reads only what is new; another conversation is read from the start."""

    async def story(model: LocalModel) -> list[int]:
        first = await model.complete(ModelRequest([SYSTEM, USER], [], is_first=True))
        more = [SYSTEM, USER, {"role": "assistant", "content": first.text}, {"role": "user", "content": "Why?"}]
        second = await model.complete(ModelRequest(more, []))
        other = await model.complete(ModelRequest([SYSTEM, {"role": "user", "content": "Where is the pen?"}], []))
        return [answer.usage.cached_tokens for answer in (first, second, other)]

    first, second, other = played(story, prompt_cache="exact")
    assert first == 0
    assert second > 20
    assert other == 0


@needs_gguf
def test_a_prefix_is_read_once_and_put_back_bit_for_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Episodes in turns, of three prefixes where two are kept: each reads its own part alone, and repeats itself."""
    others = [
        {"role": "system", "content": f"You are guide number {n}. " + "You know all rooms. " * 20} for n in (1, 2)
    ]

    async def ask(model: LocalModel, system: dict[str, str]) -> tuple[str, int]:
        answer = await model.complete(ModelRequest([system, USER], [TOOL], is_first=True))
        return answer.text, answer.usage.cached_tokens

    async def story(model: LocalModel) -> list[tuple[str, int]]:
        return [await ask(model, system) for system in (SYSTEM, others[0], SYSTEM, others[1], others[0], SYSTEM)]

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    told = played(story, max_tokens=24)
    assert told[0] == told[2] == told[5]
    assert told[1] == told[4]
    assert min(cached for _, cached in told) > 15
    assert not list(tmp_path.iterdir())


@needs_gguf
def test_long_prompt_is_a_full_context() -> None:
    """A prompt beyond the context is an answer that ends the episode."""

    async def story(model: LocalModel) -> Any:
        return await model.complete(ModelRequest([{"role": "user", "content": "word " * 2000}], []))

    assert played(story).finish_reason == "context_full"


@needs_gguf
def test_server_that_died_is_started_again() -> None:
    """When the child is killed, the next request starts another one."""

    async def story(model: LocalModel) -> list[str]:
        request = ModelRequest([SYSTEM, USER], [], is_first=True)
        first = await model.complete(request)
        os.kill(children_of(os.getpid())[0], signal.SIGKILL)
        return [first.text, (await model.complete(request)).text]

    first, second = played(story)
    assert first == second


@needs_gguf
def test_an_interrupt_of_the_terminals_job_leaves_the_server_to_us() -> None:
    """Ctrl-C in a terminal goes to the whole process group; a reply that is under way is still given."""

    async def story(model: LocalModel) -> list[bool]:
        await model.complete(ModelRequest([USER], []))
        (child,) = children_of(os.getpid())
        return [os.getpgid(child) == os.getpgid(0), os.getsid(child) == os.getsid(0)]

    assert played(story) == [False, False]


@needs_gguf
def test_close_ends_the_child() -> None:
    """After close no process is left."""

    async def story(model: LocalModel) -> list[int]:
        await model.complete(ModelRequest([USER], []))
        return children_of(os.getpid())

    (child,) = played(story)
    assert not is_running(child)


ORPHANING = """
import asyncio, sys, time
from evolve.models.local import LocalModel
from evolve.models.settings import ModelSettings
from evolve.protocols import ModelRequest

async def story():
    model = LocalModel(ModelSettings(kind="local", path=sys.argv[1], threads=1, context=256, max_tokens=1))
    await model.complete(ModelRequest([{"role": "user", "content": "hi"}], []))
    print("served", flush=True)
    time.sleep(60)

asyncio.run(story())
"""


@needs_gguf
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_child_dies_with_its_parent() -> None:
    """A parent that is killed with -9 leaves no server behind."""
    with subprocess.Popen([sys.executable, "-c", ORPHANING, GGUF], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"served\n"
        (child,) = children_of(parent.pid)
        parent.kill()
    deadline = time.monotonic() + 5
    while is_running(child) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not is_running(child)


def children_of(parent: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]


def is_running(process: int) -> bool:
    try:
        return ") Z " not in Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False
