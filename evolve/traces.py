"""The only module that reads and writes episode files: append-only JSON Lines, one episode a line.

An episode is at traces/<environment>/<split>/<first 12 of the harness digest>.jsonl. What `append` returned
is on the disk. A line that a crash tore was never acknowledged: the next append takes its place. Which
episodes count is the ledger's business: a crash between the two can leave a line that no row points at.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import orjson
from pydantic import ValidationError

from evolve.canaries import Canaries
from evolve.disk import append_whole, in_words
from evolve.errors import StoreError
from evolve.records import Episode, Split
from evolve.secrets import may_hold_secret, scrub

_SAFE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_BLOCK = 65536


class Place(NamedTuple):
    """Where an episode lies: a path relative to the traces folder, and the byte at which its line begins."""

    path: str
    offset: int


class Line(NamedTuple):
    """An episode as it stands in its file: the path as in `Place`, and the text with its line end."""

    path: str
    text: bytes


class Traces:
    """The episode files under one folder.

    Args:
        root: the traces folder; made when the first episode is written.
        secrets: values (API keys in use) that must not be stored; key-shaped text is removed anyway.
        canaries: looked for in each episode before it is written.
    """

    def __init__(self, root: Path, *, secrets: Collection[str] = (), canaries: Canaries | None = None) -> None:
        self._root = root
        self._secrets = tuple(secrets)
        self._canaries = canaries or Canaries({})

    def append(self, episode: Episode) -> Place:
        """Write an episode at the end of its file and return its place once it is on the disk.

        Raises:
            CanaryFound: the episode holds a canary; it is not written.
        """
        (place,) = self.append_lines([self.line_of(episode)])
        return place

    def line_of(self, episode: Episode) -> Line:
        """Return an episode as it may be written.

        Raises:
            CanaryFound: the episode holds a canary.
        """
        text = episode.model_dump_json().encode()
        self._canaries.refuse(text, f"an episode on task {episode.task_id}")
        return Line(_path_of(episode), self._scrubbed(text) + b"\n")

    def append_lines(self, lines: Sequence[Line]) -> list[Place]:
        """Write lines at the ends of their files and return their places once all are on the disk, file by file."""
        offsets: dict[int, int] = {}
        files: dict[str, list[int]] = {}
        for number, line in enumerate(lines):
            files.setdefault(line.path, []).append(number)
        for path, numbers in files.items():
            with _store_errors(self._root / path), _locked(self._root / path) as file:
                begin = end = _drop_torn_line(file)
                for number in numbers:
                    offsets[number] = end
                    end += len(lines[number].text)
                append_whole(file, b"".join(lines[number].text for number in numbers), end=begin)
                os.fsync(file)
        return [Place(line.path, offsets[number]) for number, line in enumerate(lines)]

    def _scrubbed(self, line: bytes) -> bytes:
        if not may_hold_secret(line, self._secrets):
            return line
        return orjson.dumps(scrub(orjson.loads(line), self._secrets))

    def read(self, path: str, offset: int) -> Episode:
        """Return the episode whose line begins at `offset`."""
        file = self._root / path
        with _store_errors(file), file.open("rb") as stream:
            stream.seek(offset)
            line = stream.readline()
        return _parse(line, f"{file}, byte {offset}")

    def scan(self, environment: str = "*", split: Split | None = None) -> Iterator[tuple[Place, Episode]]:
        """Yield each episode with its place, file by file in sorted order; a torn last line is passed over."""
        for file in sorted(self._root.glob(f"{environment}/{split.value if split else '*'}/*.jsonl")):
            yield from self._scan_file(file)

    def _scan_file(self, file: Path) -> Iterator[tuple[Place, Episode]]:
        path, offset = file.relative_to(self._root).as_posix(), 0
        with _store_errors(file), file.open("rb") as stream:
            for number, line in enumerate(stream, start=1):
                if line.endswith(b"\n"):
                    yield Place(path, offset), _parse(line, f"{file}, line {number}")
                offset += len(line)


def _path_of(episode: Episode) -> str:
    if not _SAFE_NAME.fullmatch(episode.environment) or not _SAFE_NAME.fullmatch(episode.harness):
        raise StoreError(f"no file name can be made of environment {episode.environment!r}, {episode.harness!r}")
    return f"{episode.environment}/{episode.split.value}/{episode.harness[:12]}.jsonl"


def _parse(line: bytes, where: str) -> Episode:
    try:
        return Episode.model_validate_json(line)
    except ValidationError as error:
        hint = "restore the file from a copy, or remove the line and run again"
        raise StoreError(f"{where}: no whole episode ({error.error_count()} faults); {hint}") from error


@contextmanager
def _locked(file: Path) -> Iterator[int]:
    """Open a file for appending, alone: two processes never mix their lines."""
    file.parent.mkdir(parents=True, exist_ok=True)
    is_new = not file.exists()
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if is_new:
            _sync_folder(file.parent)
        yield descriptor
    finally:
        os.close(descriptor)


def _sync_folder(folder: Path) -> None:
    """Make a new file's name survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _drop_torn_line(file: int) -> int:
    """Cut off what follows the last line end and return where the next line begins."""
    end = size = os.fstat(file).st_size
    while end > 0:
        start = max(0, end - _BLOCK)
        newline = os.pread(file, end - start, start).rfind(b"\n")
        if newline >= 0:
            end = start + newline + 1
            break
        end = start
    if end < size:
        os.ftruncate(file, end)
    return end


@contextmanager
def _store_errors(file: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreError(f"episode file {file}: {in_words(error)}") from error
