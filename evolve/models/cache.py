"""Completions stored by request, so that an equal request is asked once, ever.

The file is append-only JSON Lines, one `{key, owner, completion}` a line. A line reaches the operating
system before its completion is used, so `kill -9` loses at most a line that nobody has seen.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import TracebackType

import orjson

from evolve.errors import StoreError
from evolve.models.budget import Budget, estimate
from evolve.models.settings import Price
from evolve.protocols import Model, ModelRequest
from evolve.records import Completion, ModelFingerprint

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Answered:
    """A completion and where it came from.

    `key` names the request. `is_asked` is True where this episode asked the model, now or before it was
    interrupted; False where it reuses what another episode asked.
    """

    completion: Completion
    key: str
    is_asked: bool


@dataclass(frozen=True, slots=True)
class Stored:
    """A completion at rest: the episode that first asked, and the completion as JSON."""

    owner: str
    text: bytes

    @property
    def completion(self) -> Completion:
        """The completion itself."""
        return Completion.model_validate_json(self.text)


def request_bytes(fingerprint_digest: str, request: ModelRequest) -> bytes:
    """Return what identifies a request. Keys keep their order, for a model reads them in that order."""
    return orjson.dumps([fingerprint_digest, request.messages, request.tools, request.stream])


def request_key(fingerprint_digest: str, request: ModelRequest) -> str:
    """Return the name of a request to one model: SHA-256 in hex."""
    return hashlib.sha256(request_bytes(fingerprint_digest, request)).hexdigest()


class CompletionCache:
    """The stored completions of one file. One process writes; the first completion of a key stays."""

    def __init__(self, path: Path) -> None:
        """Open the file, or begin one.

        Raises:
            StoreError: a line other than the last does not read, or the file cannot be opened.
        """
        self.path = path
        self._stored: dict[str, Stored] = {}
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = open(path, "a+b", buffering=0)  # noqa: SIM115 - stays open as long as the cache
        except OSError as error:
            raise StoreError(f"the completion cache {path} cannot be opened: {error}") from error
        try:
            self._load()
        except BaseException:
            self._file.close()
            raise

    def __len__(self) -> int:
        return len(self._stored)

    def __enter__(self) -> CompletionCache:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def get(self, key: str) -> Stored | None:
        """Return what is stored under a key."""
        return self._stored.get(key)

    def put(self, key: str, owner: str, completion: Completion) -> Stored:
        """Store a completion and return what is stored under the key from now on."""
        if (known := self._stored.get(key)) is not None:
            return known
        stored = Stored(owner, completion.model_dump_json(exclude_defaults=True).encode())
        line = orjson.dumps({"key": key, "owner": owner, "completion": orjson.Fragment(stored.text)}) + b"\n"
        try:
            if self._file.write(line) != len(line):
                raise OSError("the disk took a part of the line only")
        except OSError as error:
            raise StoreError(f"the completion cache {self.path} cannot be written: {error}") from error
        self._stored[key] = stored
        return stored

    def entries(self) -> Iterator[tuple[str, Completion]]:
        """Return all keys with their completions, in the order of the file."""
        return ((key, stored.completion) for key, stored in self._stored.items())

    def close(self) -> None:
        """Bring the file to the disk."""
        if not self._file.closed:
            os.fsync(self._file.fileno())
            self._file.close()

    def _load(self) -> None:
        self._file.seek(0)
        good = 0
        torn: int | None = None
        for number, line in enumerate(self._file.readlines(), start=1):
            if torn is not None:
                raise StoreError(
                    f"{self.path}, line {torn} is no stored completion; restore the file or delete that line"
                )
            entry = _read_line(line)
            if entry is None:
                torn = number
            else:
                good += len(line)
                self._stored.setdefault(entry[0], entry[1])
        if torn is not None:
            log.warning("%s: the last line (%d) was not written to its end and is dropped", self.path, torn)
            self._file.truncate(good)


def _read_line(line: bytes) -> tuple[str, Stored] | None:
    """Return the key and the completion of a line; None where the line is torn."""
    if not line.endswith(b"\n"):
        return None
    try:
        entry = orjson.loads(line)
        completion = Completion.model_validate(entry["completion"])
        return entry["key"], Stored(entry["owner"], completion.model_dump_json(exclude_defaults=True).encode())
    except (ValueError, KeyError, TypeError):
        return None


class CachedModel:
    """A model that is asked only what nobody asked before.

    Args:
        model: asked for what is not stored.
        cache: shared by all episodes, and by all models: their fingerprints are part of each key.
        budget: what asking may cost; reused completions cost nothing.
        price: what a request will cost, for the budget; None: known only afterwards.
        grace_s: how long `close` waits for answers on their way: they are paid for, and a resume needs them.
    """

    def __init__(
        self,
        model: Model,
        cache: CompletionCache,
        *,
        budget: Budget | None = None,
        price: Price | None = None,
        grace_s: float = 5.0,
    ) -> None:
        self.model = model
        self.cache = cache
        self._budget = budget
        self._price = price
        self._grace_s = grace_s
        self._asking: dict[str, asyncio.Task[Stored]] = {}

    @property
    def fingerprint(self) -> ModelFingerprint:
        """The fingerprint of the model behind the cache."""
        return self.model.fingerprint

    async def complete(self, request: ModelRequest, *, owner: str) -> Answered:
        """Answer one request of the episode `owner`. Equal requests at the same time are asked once.

        Raises:
            ProviderError: the model failed; all who wait for this request get the error.
            BudgetSpent: asking could exceed the budget.
        """
        content = request_bytes(self._digest, request)
        key, size = hashlib.sha256(content).hexdigest(), len(content)
        del content  # long, and nobody needs it while the model thinks
        stored = self.cache.get(key)
        if stored is None:
            # An episode that is cancelled leaves its request running: it is paid for, so its answer is kept.
            stored = await asyncio.shield(self._asked(key, request, owner, size))
        return Answered(stored.completion, key, is_asked=stored.owner == owner)

    async def close(self) -> None:
        """Take the answers that are on their way, give up those that keep us waiting, and close the model."""
        waiting = tuple(self._asking.values())
        if waiting:
            await asyncio.wait(waiting, timeout=self._grace_s)
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        await self.model.close()

    @cached_property
    def _digest(self) -> str:
        return self.model.fingerprint.digest

    def _asked(self, key: str, request: ModelRequest, owner: str, size: int) -> asyncio.Task[Stored]:
        if (task := self._asking.get(key)) is None:
            task = asyncio.create_task(self._ask(key, request, owner, size))
            task.add_done_callback(lambda done: self._forget(key, done))
            self._asking[key] = task
        return task

    async def _ask(self, key: str, request: ModelRequest, owner: str, size: int) -> Stored:
        if self._budget is None:
            return self.cache.put(key, owner, await self.model.complete(request))
        expected = estimate(size, self.fingerprint.sampling, self._price)
        with self._budget.reserve(expected) as reservation:
            completion = await self.model.complete(request)
            reservation.settle(completion.usage)
        return self.cache.put(key, owner, completion)

    def _forget(self, key: str, done: asyncio.Task[Stored]) -> None:
        self._asking.pop(key, None)
        if not done.cancelled():
            done.exception()  # seen here, for those who asked may be gone
