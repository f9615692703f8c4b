"""The host's handle on one child process: a line of JSON out, a line back, each under a deadline.

JSON and not pickle: what a child writes is read as data. A child that breaks is never used again.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import weakref
from pathlib import Path
from threading import Lock
from typing import IO

from evolve.environments.children import main
from evolve.errors import EnvironmentBroken
from evolve.records import Json

LOG_TAIL_BYTES = 400
BASE_ENVIRON = {"PATH": os.defpath, "LANG": "C.UTF-8", "PYTHONHASHSEED": "0"}
"""All that a child sees of the world: no keys, and sets of strings in one order."""


class Child:
    """A process of its own that runs a program and answers questions, one at a time.

    It is in a session of its own, so that Ctrl-C reaches its host only, and ends when its host does. One that
    nobody holds any more is killed.

    Args:
        program: a Python file with a function `answer(question)`; see `main`.
    """

    def __init__(self, program: Path) -> None:
        self.served = 0
        self.is_broken = False
        self._name = program.stem
        self._asking = Lock()
        self.folder = Path(tempfile.mkdtemp(prefix="evolve-child-"))
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `_end`
        self._connection, theirs = socket.socketpair()
        with theirs:
            self._process = _start(program, self.folder, theirs, self._log)
        self._replies = self._connection.makefile("rb")
        self._finalizer = weakref.finalize(
            self, _end, self._process, (self._replies, self._connection, self._log), self.folder
        )

    @property
    def process_id(self) -> int:
        """The child's process id."""
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """True while the process runs and never broke a promise."""
        return not self.is_broken and self._process.poll() is None

    @property
    def is_asked(self) -> bool:
        """True while a thread waits for an answer."""
        return self._asking.locked()

    def ask(self, question: Json, *, timeout_s: float) -> Json:
        """Ask a question and return the answer.

        Raises:
            EnvironmentBroken: the child died, hung or answered with something that is no JSON object.
        """
        with self._asking:
            try:
                self._connection.settimeout(timeout_s)
                self._connection.sendall(json.dumps(question).encode() + b"\n")
                line = self._replies.readline()
            except TimeoutError:
                raise self._broken(f"did not answer within {timeout_s:.0f} s") from None
            except (OSError, ValueError):  # ValueError: closed by another thread
                raise self._broken("died") from None
            if not line.endswith(b"\n"):
                raise self._broken("died")
            try:
                answer = json.loads(line)
            except ValueError:
                answer = None
            if not isinstance(answer, dict):
                raise self._broken("answered with something that is no JSON object")
            return answer

    def end(self) -> None:
        """Kill the process and wait for it; a thread that waits for its answer is told that the child died."""
        self.is_broken = True
        self._process.kill()
        with self._asking:  # free as soon as the kill is noticed; nobody may read a socket while it is closed
            self._finalizer()

    def _broken(self, what: str) -> EnvironmentBroken:
        self.is_broken = True
        self._process.kill()
        self._process.wait()
        return EnvironmentBroken(f"the {self._name} process {what}{_tail(self._log)}")


def _start(program: Path, folder: Path, theirs: socket.socket, log: IO[bytes]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-P", main.__file__, str(program), str(folder)],
        stdin=theirs.fileno(),
        stdout=theirs.fileno(),
        stderr=log,
        env=BASE_ENVIRON | {"HOME": str(folder), "TMPDIR": str(folder)},
        cwd=folder,
        start_new_session=True,
    )


def _tail(log: IO[bytes]) -> str:
    """Return the end of what a child wrote to its standard error, as the end of a sentence."""
    size = log.seek(0, os.SEEK_END)
    log.seek(max(0, size - LOG_TAIL_BYTES))
    text = " ".join(log.read().decode(errors="replace").split())
    return f": ...{text}" if text else ""


def _end(process: subprocess.Popen[bytes], opened: tuple[IO[bytes] | socket.socket, ...], folder: Path) -> None:
    process.kill()
    process.wait()
    for thing in opened:
        thing.close()
    shutil.rmtree(folder, ignore_errors=True)
