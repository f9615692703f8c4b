"""Runs a program that nobody watches: no input, no limit on a line, no process left behind, no key in the log."""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from evolve.classify.excerpt import is_seen
from evolve.proposers import tether
from evolve.secrets import remove_secrets

_CHUNK = 64 * 1024
_LONGEST_SECRET = 8 * 1024
_LONGEST_EVENT = 32 * 1024 * 1024
_LARGEST_TRANSCRIPT = 64 * 1024 * 1024  # characters, both streams together
_LONGEST_HELD = 1024 * 1024
_POLL_S = 0.05
_GRACE_S = 3.0
_LAST_LINE = 400


@dataclass(frozen=True, slots=True)
class Finished:
    """How a program ended. `last_line` is the last thing that it printed, secrets removed."""

    exit_code: int
    is_timeout: bool
    last_line: str


def shortened(text: str) -> str:
    """Return a program's words as one line that fits into a message, without what would drive a terminal."""
    return " ".join("".join(c if is_seen(c) else " " for c in text).split())[:_LAST_LINE]


async def run_headless(
    argv: Sequence[str],
    *,
    cwd: Path,
    environ: Mapping[str, str],
    timeout_s: float,
    transcript: Path,
    secrets: Sequence[str],
    on_line: Callable[[bytes], None],
    title: str = "",
) -> Finished:
    """Run a program to its end or its timeout, and end its whole process group with it.

    Args:
        argv: the program and its arguments.
        cwd: its working folder.
        environ: all of its environment.
        timeout_s: after this the group is ended.
        transcript: file that gets both output streams, secrets removed, up to 64 MiB.
        secrets: values that must not reach the transcript, beside whatever has the shape of a key.
        on_line: called with each line of standard output; lines beyond 32 MiB are passed over.
        title: first line of the transcript.
    """
    transcript.parent.mkdir(parents=True, exist_ok=True)
    with transcript.open("w", encoding="utf-8") as log:
        log.write(f"{title}\n\n" if title else "")
        process = await _start(argv, cwd, environ)
        lines, out, err = _Lines(on_line), _Transcript(log, secrets), _Transcript(log, secrets)
        pumps = [
            asyncio.create_task(_pump(process.stdout, [out.write, lines.write])),
            asyncio.create_task(_pump(process.stderr, [err.write])),
        ]
        try:
            is_timeout = not await _ends_within(timeout_s, process)
        finally:
            _end_group(process.pid)
            await _settle(pumps)
            for stream in (lines, out, err):
                stream.finish()
    await _exit(process)
    exit_code = process.returncode if process.returncode is not None else -1
    return Finished(exit_code, is_timeout, err.last_line or out.last_line)


async def _start(argv: Sequence[str], cwd: Path, environ: Mapping[str, str]) -> asyncio.subprocess.Process:
    """Start a program as the head of a process group of its own, with nothing to read.

    On Linux it ends with this process; what it started itself may not.
    """
    tethered = [sys.executable, "-IS", tether.__file__, str(os.getpid()), environ.get("LC_CTYPE", ""), *argv]
    return await asyncio.create_subprocess_exec(
        *tethered,
        cwd=cwd,
        env=dict(environ),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )


async def _ends_within(timeout_s: float, process: asyncio.subprocess.Process) -> bool:
    """Wait for a program; one that takes longer is asked to end, and has a moment to do so."""
    try:
        async with asyncio.timeout(timeout_s):
            await _exit(process)
    except TimeoutError:
        await asyncio.sleep(_POLL_S)  # where this process was paused, the program may have ended long ago
        if process.returncode is None:
            await _ask_to_end(process)
            return False
    return True


async def _exit(process: asyncio.subprocess.Process) -> None:
    """Wait for the program itself. `wait()` would also wait for children that hold its pipes open."""
    while process.returncode is None:  # noqa: ASYNC110  there is no event for this alone
        await asyncio.sleep(_POLL_S)


async def _ask_to_end(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGTERM)
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(_exit(process), _GRACE_S)


def _end_group(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


async def _settle(pumps: Sequence[asyncio.Task[None]]) -> None:
    """Let the pumps drain what is left; a child that left the group and holds a pipe is not waited for."""
    _, waiting = await asyncio.wait(pumps, timeout=_GRACE_S)
    for pump in waiting:
        pump.cancel()
    await asyncio.gather(*pumps, return_exceptions=True)


async def _pump(stream: asyncio.StreamReader | None, sinks: Sequence[Callable[[bytes], None]]) -> None:
    assert stream is not None, "both streams are pipes"
    while chunk := await stream.read(_CHUNK):
        for sink in sinks:
            sink(chunk)


class _Lines:
    """Cuts a stream into lines, whatever the sizes of its chunks."""

    def __init__(self, on_line: Callable[[bytes], None]) -> None:
        self._on_line = on_line
        self._held = bytearray()
        self._is_too_long = False

    def write(self, chunk: bytes) -> None:
        *ended, rest = chunk.split(b"\n")
        for piece in ended:
            self._hold(piece)
            if not self._is_too_long:
                self._on_line(bytes(self._held))
            self._held.clear()
            self._is_too_long = False
        self._hold(rest)

    def finish(self) -> None:
        self.write(b"\n")

    def _hold(self, piece: bytes) -> None:
        self._held += piece
        if len(self._held) > _LONGEST_EVENT:
            self._held.clear()
            self._is_too_long = True


class _Transcript:
    """Writes a stream as text without its secrets, also where a secret lies across two chunks."""

    def __init__(self, log: IO[str], secrets: Sequence[str]) -> None:
        self._log = log
        self._secrets = sorted(secrets, key=len, reverse=True)
        self._decode = codecs.getincrementaldecoder("utf-8")(errors="replace").decode
        self._held = ""
        self._room = _LARGEST_TRANSCRIPT // 2
        self.last_line = ""

    def write(self, chunk: bytes) -> None:
        self._held += self._decode(chunk)
        if len(self._held) > _LONGEST_HELD:
            self._emit(len(self._held))
        elif "-----BEGIN " in self._held and "-----END " not in self._held:
            return  # a private key has several lines
        elif end := self._held.rfind("\n") + 1:
            self._emit(end)
        elif len(self._held) > 4 * _LONGEST_SECRET:
            self._emit(self._safe_cut())

    def finish(self) -> None:
        self._held += self._decode(b"", True)
        self._emit(len(self._held))

    def _safe_cut(self) -> int:
        """Return where a line without an end can be cut: where both sides read the same as the whole; 0 if nowhere."""
        for cut in range(len(self._held) - _LONGEST_SECRET, 0, -_LONGEST_SECRET):
            left, right = self._held[max(cut - _LONGEST_SECRET, 0) : cut], self._held[cut : cut + _LONGEST_SECRET]
            if self._clean(left) + self._clean(right) == self._clean(left + right):
                return cut
        return 0

    def _clean(self, text: str) -> str:
        return remove_secrets(text, self._secrets)

    def _emit(self, end: int) -> None:
        text, self._held = self._held[:end], self._held[end:]
        if not text:
            return
        clean = self._clean(text)
        lines = [line.strip() for line in clean.split("\n") if line.strip()]
        self.last_line = shortened(lines[-1]) if lines else self.last_line
        self._log.write(clean[: self._room])
        self._room -= len(clean[: self._room])
