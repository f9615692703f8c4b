"""The prefix that the prompts of many episodes share, read once by a llama.cpp server and put back for each of them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from itertools import takewhile
from pathlib import Path
from typing import Any

import aiohttp
import orjson

from evolve.errors import ProviderError
from evolve.protocols import ModelRequest
from evolve.records import Json, digest_of

KEPT = 2
"""Prefixes kept at once: those of the two arms that a gate or an evaluation plays."""
SOMEBODY = {"role": "user", "content": "."}
"""Ends a prefix: templates want a user's turn, and where it differs the server reads on anew."""


class PrefixKeeper:
    """Keeps what one slot of a server has read of system messages and tools, in files.

    A prefix is read from the start, alone, and what is put back is that state bit for bit: so a reply still depends
    on its own episode and this prefix only, whatever the server answered in between.

    Args:
        url: the server's address; it was started with `folder` as its place for slots.
        folder: holds a file for each prefix that is kept, tens of megabytes for a small model.
        timeout_s: seconds for one reading.
    """

    def __init__(self, url: str, folder: Path, *, timeout_s: float) -> None:
        self._url = url
        self._folder = folder
        self._kept: dict[str, bool] = {}
        self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=timeout_s), trust_env=False)

    async def put_back(self, request: ModelRequest) -> bool:
        """Have the slot hold the prefix of a request; False where it has none, or the server cannot read it alone.

        Raises:
            ProviderError: the server is gone.
        """
        head = list(takewhile(lambda message: message["role"] == "system", request.messages))
        if not (head or request.tools):
            return False
        name = digest_of({"messages": head, "tools": request.tools})
        is_kept = self._kept.pop(name, None)
        if is_kept is None:
            is_kept = await self._read(name, head, request.tools)
            await self._forget_oldest()
        elif is_kept:
            is_kept = await self._slot("restore", name)
        self._kept[name] = is_kept
        return is_kept

    async def close(self) -> None:
        """Close the connections; the files are the folder's."""
        await self._session.close()

    async def _read(self, name: str, head: list[Json], tools: list[Json]) -> bool:
        """Read a prefix from the start and keep what the slot then holds."""
        asked = {"messages": [*head, SOMEBODY], "tools": tools} if tools else {"messages": [*head, SOMEBODY]}
        written = await self._post("/apply-template", asked)
        if not isinstance(written.get("prompt"), str):
            return False
        read = await self._post("/completion", {"prompt": written["prompt"], "n_predict": 0, "cache_prompt": False})
        return bool(read.get("tokens_evaluated")) and await self._slot("save", name)

    async def _forget_oldest(self) -> None:
        while len(self._kept) >= KEPT:
            oldest = next(iter(self._kept))
            del self._kept[oldest]
            await asyncio.to_thread((self._folder / oldest).unlink, missing_ok=True)

    async def _slot(self, action: str, name: str) -> bool:
        return "id_slot" in await self._post(f"/slots/0?action={action}", {"filename": name})

    async def _post(self, path: str, body: Json) -> Mapping[str, Any]:
        """Ask the server; what it refuses is an empty answer."""
        try:
            async with self._session.post(f"{self._url}{path}", data=orjson.dumps(body)) as answer:
                told = orjson.loads(await answer.read()) if answer.status == 200 else {}
        except (aiohttp.ClientError, TimeoutError, orjson.JSONDecodeError) as error:
            raise ProviderError(f"llama.cpp did not answer at {path}: {error}") from error
        return told if isinstance(told, dict) else {}
