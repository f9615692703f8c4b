"""A GGUF file on this machine, served by llama.cpp in a child process that starts with the first request."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import importlib.metadata
import importlib.util
import os
import sys
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import IO

import orjson

from evolve.errors import ConfigError, ProviderError
from evolve.models.openai import OpenAIModel, pinned_sampling
from evolve.models.prefix import PrefixKeeper
from evolve.models.settings import ModelSettings, named
from evolve.models.weights import weights_sha256
from evolve.named_files import read_text, require_file
from evolve.protocols import ModelRequest
from evolve.records import Completion, Json, ModelFingerprint
from evolve.scratch import private_folder

RUNTIME = "xllamacpp"
INSTALL = "pip install 'evolve-harness[local]'"
START_TIMEOUT_S = 300.0
STOP_TIMEOUT_S = 5.0
LAST_MOMENT_S = 1.0


class LocalModel:
    """A model in a child process. It answers one request at a time.

    With `prompt_cache = "exact"` a prompt is read from the start unless it continues the conversation that
    was served last: then a reply depends on its own episode only, and repeats bit for bit. With "prefix" it is
    read from where its system messages and tools end, which were read alone, once: as exact, and several times as
    fast. Episodes that take turns are read anew each time, so play them one after the other.

    Raises:
        ConfigError: the file, the template or the runtime is missing.
    """

    def __init__(self, settings: ModelSettings, *, environ: Mapping[str, str] = os.environ) -> None:
        self._path = require_file("model.path", named(settings.path, "path", "local")).resolve()
        template = settings.chat_template
        self._template = None if template is None else read_text("model.chat_template", template.expanduser())
        if importlib.util.find_spec(RUNTIME) is None:
            raise ConfigError(f"a local model needs the package {RUNTIME}: {INSTALL}")
        self._settings = settings
        self._environ = environ
        self._lock = asyncio.Lock()
        self._server: _Server | None = None
        self._served: tuple[list[Json], list[Json]] = ([], [])

    def __repr__(self) -> str:
        return f"LocalModel({self._path.name!r})"

    @cached_property
    def fingerprint(self) -> ModelFingerprint:
        """The weights, the template, the runtime's version and the sampling."""
        sampling = pinned_sampling(self._settings) | {
            "context": self._settings.context,
            "prompt_cache": self._settings.prompt_cache,
            "runtime": f"{RUNTIME} {importlib.metadata.version(RUNTIME)}",
        }
        if self._template is not None:
            sampling["chat_template_sha256"] = hashlib.sha256(self._template.encode()).hexdigest()
        return ModelFingerprint(
            model_id=self._settings.id or self._path.stem,
            endpoint="local",
            protocol="tools",
            sampling=sampling,
            weights_sha256=weights_sha256(self._path, environ=self._environ),
        )

    async def complete(self, request: ModelRequest) -> Completion:
        """Answer one request after those before it. A server that died is started again once.

        Raises:
            ProviderError: the server does not start, or does not answer.
        """
        async with self._lock:
            try:
                return await self._ask(request)
            except ProviderError:
                if self._server is not None and not await self._server.has_ended():
                    raise
            return await self._ask(request)

    async def close(self) -> None:
        """Stop the server."""
        if self._server is not None:
            await self._server.stop()
            self._server = None
        self._served = ([], [])

    async def _ask(self, request: ModelRequest) -> Completion:
        if self._server is None or not self._server.is_alive:
            await self.close()
            self._server = await _Server.start(self._settings, self._path, self._template)
        is_read = self._settings.prompt_cache == "warm" or self._continues(request)
        self._served = ([], [])  # until it has answered, nobody knows what the server holds
        if not is_read and self._settings.prompt_cache == "prefix":
            is_read = await self._server.prefixes.put_back(request)
        completion = await self._server.model.complete_with(request, {"cache_prompt": is_read})
        self._served = (list(request.messages), request.tools)
        return completion

    def _continues(self, request: ModelRequest) -> bool:
        """Tell whether the request adds to the conversation that was served last."""
        messages, tools = self._served
        is_longer = 0 < len(messages) < len(request.messages)
        return (
            not request.is_first
            and is_longer
            and request.messages[: len(messages)] == messages
            and request.tools == tools
        )


class _Server:
    """A running child process and the client that talks to it."""

    def __init__(
        self, process: asyncio.subprocess.Process, model: OpenAIModel, prefixes: PrefixKeeper, held: ExitStack
    ) -> None:
        self.model = model
        self.prefixes = prefixes
        self._process = process
        self._held = held

    @classmethod
    async def start(cls, settings: ModelSettings, path: Path, template: str | None) -> _Server:
        with ExitStack() as held:
            folder = held.enter_context(private_folder("evolve-slots-"))
            process, url = await cls._spawn(settings, path, template, folder)
            address = {
                "base_url": f"{url}/v1",
                "api_key_env": None,
                "id": settings.id or path.stem,
                "price": settings.price,
            }
            model = OpenAIModel(settings.model_copy(update=address), trusts_proxies=False)
            return cls(process, model, PrefixKeeper(url, folder, timeout_s=settings.timeout_s), held.pop_all())

    @staticmethod
    async def _spawn(
        settings: ModelSettings, path: Path, template: str | None, folder: Path
    ) -> tuple[asyncio.subprocess.Process, str]:
        """Start the child and return it with its address.

        Raises:
            ProviderError: it does not start; with its last words.
        """
        options = {
            "path": str(path),
            "threads": settings.threads,
            "context": settings.context,
            "chat_template": template,
            "nice": settings.nice,
            "slots": f"{folder}/",
        }
        with tempfile.TemporaryFile() as words:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-m", "evolve.models.llama_server", orjson.dumps(options).decode()),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=words,
                start_new_session=True,  # a terminal's Ctrl-C is for us: replies under way are still wanted
            )
            try:
                url = await _first_line(process)
            except BaseException as error:
                await _stop(process)
                if isinstance(error, TimeoutError | ValueError):
                    raise ProviderError(f"llama.cpp did not start with {path}: {_last_words(words)}") from error
                raise
        return process, url

    @property
    def is_alive(self) -> bool:
        return self._process.returncode is None

    async def has_ended(self) -> bool:
        """Tell whether the process is gone; one that was killed a moment ago may not be known to be."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LAST_MOMENT_S):
                await self._process.wait()
        return not self.is_alive

    async def stop(self) -> None:
        await self.model.close()
        await self.prefixes.close()
        await _stop(self._process)
        self._held.close()


async def _first_line(process: asyncio.subprocess.Process) -> str:
    """Return the URL that the child reports. Raises ValueError where it ends without a report."""
    assert process.stdout is not None
    async with asyncio.timeout(START_TIMEOUT_S):
        line = await process.stdout.readline()
    return str(orjson.loads(line)["url"])


async def _stop(process: asyncio.subprocess.Process) -> None:
    """Close the child's input, which ends it; kill it where that takes too long."""
    assert process.stdin is not None
    process.stdin.close()
    try:
        async with asyncio.timeout(STOP_TIMEOUT_S):
            await process.wait()
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def _last_words(words: IO[bytes]) -> str:
    words.seek(0)
    lines = words.read().decode(errors="replace").splitlines()
    return " / ".join(line.strip() for line in lines[-4:]) or "it said nothing"
