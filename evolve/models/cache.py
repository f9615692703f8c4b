"""Completions stored by request, so that an equal request is asked once, ever.

The file is append-only JSON Lines, one `{key, owner, payer, completion}` a line. A line reaches the operating
system before its completion is used, so `kill -9` loses at most a line that nobody has seen.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

import orjson

from evolve.disk import append_whole, in_words
from evolve.errors import StoreError
from evolve.protocols import ModelRequest
from evolve.records import Completion, Usage

log = logging.getLogger(__name__)
_NOTHING = Usage()


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
        self._paid: dict[str, Usage] = {}
        self._end = 0
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = open(path, "a+b", buffering=0)  # noqa: SIM115 - stays open as long as the cache
        except OSError as error:
            raise StoreError(f"the completion cache {path}: {in_words(error)}") from error
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

    def paid(self, payer: str, *, known: Usage = _NOTHING) -> Usage:
        """Return what all completions cost that a run asked for, unfinished episodes included.

        Args:
            known: the answer where no completion names this payer, as in files of an older evolve.
        """
        return self._paid.get(payer, known)

    def put(self, key: str, owner: str, completion: Completion, *, payer: str = "") -> Stored:
        """Store a completion and return what is stored under the key from now on.

        Args:
            owner: the episode that asked.
            payer: the run on whose budget it was asked.

        Raises:
            StoreError: it could not be written; the file is as it was.
        """
        if (known := self._stored.get(key)) is not None:
            return known
        stored = Stored(owner, completion.model_dump_json(exclude_defaults=True).encode())
        names = {"key": key, "owner": owner, **({"payer": payer} if payer else {})}
        self._append(orjson.dumps({**names, "completion": orjson.Fragment(stored.text)}) + b"\n")
        self._stored[key] = stored
        self._count(payer, completion.usage)
        return stored

    def _append(self, line: bytes) -> None:
        """Write a line, or none of it: the next line must not follow half of this one."""
        try:
            append_whole(self._file.fileno(), line, end=self._end)
        except OSError as error:
            raise StoreError(f"the completion cache {self.path}: {in_words(error)}") from error
        self._end += len(line)

    def _count(self, payer: str, usage: Usage) -> None:
        if payer:
            self._paid[payer] = self.paid(payer) + usage

    def entries(self) -> Iterator[tuple[str, Completion]]:
        """Return all keys with their completions, in the order of the file."""
        return ((key, stored.completion) for key, stored in self._stored.items())

    def close(self) -> None:
        """Bring the file to the disk."""
        if not self._file.closed:
            try:
                os.fsync(self._file.fileno())
            except OSError as error:
                raise StoreError(f"the completion cache {self.path}: {in_words(error)}") from error
            finally:
                self._file.close()

    def _load(self) -> None:
        torn: int | None = None
        with self.path.open("rb") as stream:  # ours has no buffer: it would fetch a line byte by byte
            for number, line in enumerate(stream, start=1):
                if torn is not None:
                    raise StoreError(
                        f"{self.path}, line {torn} is no stored completion; restore the file or delete that line"
                    )
                entry = _read_line(line)
                if entry is None:
                    torn = number
                else:
                    self._end += len(line)
                    self._stored.setdefault(entry.key, entry.stored)
                    self._count(entry.payer, entry.usage)
        if torn is not None:
            log.warning("%s: the last line (%d) was not written to its end and is dropped", self.path, torn)
            self._file.truncate(self._end)


def paid_on_record(path: Path, payer: str, *, known: Usage) -> Usage:
    """Return what `CompletionCache.paid` would, and change nothing: a line that is not whole may be under way.

    Raises:
        StoreError: the file is there and cannot be read.
    """
    try:
        with path.open("rb") as stream:
            entries = [entry for line in stream if (entry := _read_line(line)) and entry.payer == payer]
    except FileNotFoundError:
        return known
    except OSError as error:
        raise StoreError(f"the completion cache {path}: {in_words(error)}") from error
    return Usage.total(entry.usage for entry in entries) if entries else known


class _Line(NamedTuple):
    key: str
    payer: str
    usage: Usage
    stored: Stored


def _read_line(line: bytes) -> _Line | None:
    """Return what a line holds; None where the line is torn."""
    if not line.endswith(b"\n"):
        return None
    try:
        entry = orjson.loads(line)
        completion = Completion.model_validate(entry["completion"])
        stored = Stored(entry["owner"], completion.model_dump_json(exclude_defaults=True).encode())
        return _Line(entry["key"], entry.get("payer", ""), completion.usage, stored)
    except (ValueError, KeyError, TypeError):
        return None
