"""Runs code in a process of its own and decides the fate of each effect that it, or its git, has on the disk.

A seccomp filter hands every system call that changes a file or a name to the watcher before the kernel performs it,
so a process can be killed just before the N-th effect, in the middle of a write, or told that the disk is full. The
product knows nothing of it: the same calls of Python, SQLite and git pass here that a user's machine would see.
Needs Linux 5.9 on x86_64 or aarch64; no privileges.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import mmap
import os
import platform
import select
import signal
import socket
import struct
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import Any, Literal, NamedTuple

from sqlalchemy import Engine, event

from evolve.cli.exits import exit_code, explain

Fate = Literal["go on", "kill", "tear", "kill evolve alone"] | int
"""What becomes of an effect: `tear` writes half and kills, a number is the error that the call ends with."""

_X86_64 = {
    "write": (1, 18, 20, 296),  # write, pwrite64, writev, pwritev
    "sync": (74, 75),
    "truncate": (76, 77),
    "rename": (82, 264, 316),
    "mkdir": (83, 258),
    "remove": (84, 87, 263),
    "create": (2, 85, 257),
    "link": (86, 265),
    "symlink": (88, 266),
}
_AARCH64 = {
    "write": (64, 68, 66, 70),
    "sync": (82, 83),
    "truncate": (45, 46),
    "rename": (38, 276),
    "mkdir": (34,),
    "remove": (35,),
    "create": (56,),
    "link": (37,),
    "symlink": (36,),
}
NUMBERS = {"x86_64": _X86_64, "aarch64": _AARCH64}.get(platform.machine(), {})
_SECCOMP = {"x86_64": 317, "aarch64": 277}.get(platform.machine(), -1)
_BY_FOLDER = {257, 258, 263, 264, 265, 266, 316} if platform.machine() == "x86_64" else {56, 34, 35, 36, 37, 38, 276}
_OPEN_FLAGS = {2: 1, 257: 2, 56: 2}
"""Number of the open call: which of its arguments holds the flags."""
_PWRITE = 18 if platform.machine() == "x86_64" else 68
_WRITE = 1 if platform.machine() == "x86_64" else 64
_AT_CWD = -100
_ALLOW, _ASK, _PRETEND = 0x7FFF0000, 0x7FC00000, 0x00050000
_PRCTL, _SET_DUMPABLE = (157 if platform.machine() == "x86_64" else 167), 4
_RECEIVE, _SEND = 0xC0502100, 0xC0182101
_NEW_LISTENER = 8
_GO_ON = 1
_PATIENCE_S = 120
ORPHAN_PAUSE_S = 0.3
"""How long a git that outlived its evolve stands still before it goes on."""


class Effect(NamedTuple):
    """What is about to happen: `path` is relative to the watched folder; for a new name it is that name.

    `step` is what the process said it was doing, `statement` what its transaction has changed in the ledger so far.
    """

    op: str
    path: str
    step: str
    statement: str
    program: str


class Ended(NamedTuple):
    """How a watched process ended: None for a kill, and what it said. `orphan` waits for a git that outlives it."""

    code: int | None
    said: str
    orphan: threading.Thread | None = None


def is_possible() -> bool:
    """Return whether this machine can watch a process."""
    if not NUMBERS:
        return False
    pid = os.fork()
    if pid == 0:
        try:
            _install()
        except OSError:
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def watch(
    context: ForkServerContext,
    root: Path,
    work: Callable[..., None],
    *arguments: object,
    decide: Callable[[Effect], Fate],
) -> Ended:
    """Run `work(board, *arguments)` and let `decide` have its say on each effect under `root`.

    Effects are passed on one at a time, in the order in which the kernel is asked for them.
    """
    board_file = root.with_name(f"{root.name}.board")
    said_file = root.with_name(f"{root.name}.said")
    board_file.write_bytes(bytes(mmap.PAGESIZE))
    ours, theirs = socket.socketpair()
    with ours, theirs:
        process = context.Process(target=_begin, args=(theirs, board_file, said_file, work, arguments))
        process.start()
        theirs.close()
        _, (listener, *_), _, _ = socket.recv_fds(ours, 1, 1)
        board = Board(board_file)
        watcher = _Watcher(listener, process.pid or 0, root.resolve(), board, decide)
        orphan = None
        try:
            watcher.serve()
        finally:
            process.kill()
            process.join()
            if watcher.pending:
                orphan = threading.Thread(target=watcher.serve_orphan)
                orphan.start()
            else:
                os.close(listener)
            board.close()
    code = process.exitcode
    return Ended(None if code == -signal.SIGKILL else code, said_file.read_text(errors="replace"), orphan)


class Board:
    """A page of memory on which a watched process says what it is doing, without a system call."""

    def __init__(self, file: Path) -> None:
        with file.open("r+b") as stream:
            self._page = mmap.mmap(stream.fileno(), mmap.PAGESIZE)
        self._changed: dict[str, None] = {}
        self._step = ""

    def close(self) -> None:
        self._page.close()

    def read(self) -> tuple[str, str]:
        step, statement = self._page[:].rstrip(b"\0").decode().split("|", 1) if self._page[0] else ("", "")
        return step, statement

    def say(self, step: str) -> None:
        """Say which step begins."""
        self._step = step
        self._write()

    def follow_ledger(self) -> None:
        """Say from now on which tables each transaction changes."""
        event.listen(Engine, "before_cursor_execute", self._note)

    def _note(self, connection: Any, cursor: Any, statement: str, *_: object) -> None:
        words = statement.split()
        verb = words[0].upper()
        if verb == "BEGIN":
            self._changed = {}
        elif verb in ("INSERT", "UPDATE", "DELETE"):
            self._changed[f"{verb.lower()} {words[1 if verb == 'UPDATE' else 2]}"] = None
        self._write()

    def _write(self) -> None:
        text = f"{self._step}|{', '.join(self._changed)}".encode()
        self._page[: len(text) + 1] = text + b"\0"
        self._page[len(text) + 1 :] = bytes(len(self._page) - len(text) - 1)


def _begin(
    link: socket.socket, board_file: Path, said_file: Path, work: Callable[..., None], arguments: tuple[object, ...]
) -> None:
    """Become the watched process."""
    os.setsid()
    said = os.open(said_file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(said, 2)
    board = Board(board_file)
    listener = _install()
    with link:
        socket.send_fds(link, [b"!"], [listener])
    os.close(listener)
    try:
        board.follow_ledger()
        work(board, *arguments)
    except Exception as error:
        code = exit_code(error)
        print(f"evolve: {explain(error)}", file=sys.stderr, flush=True)
        if code == 1:
            traceback.print_exc()
        sys.exit(code)


def _install() -> int:
    """Hand this thread's calls, and those of all that it starts, to a listener; return the listener."""
    libc = ctypes.CDLL(None, use_errno=True)
    code = b"".join(_filter())
    content = ctypes.create_string_buffer(code, len(code))
    header = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(content)))
    if libc.prctl(38, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "no_new_privs refused")
    listener: int = libc.syscall(_SECCOMP, 1, _NEW_LISTENER, header)
    if listener < 0:
        raise OSError(ctypes.get_errno(), "the kernel gives no seccomp listener")
    return listener


def _filter() -> Iterator[bytes]:
    """Ask about calls by number; about opening a file only where that may make or empty one.

    A process that closes its memory to others is told that this has happened: we have to look into it.
    """
    asked = sorted({number for numbers in NUMBERS.values() for number in numbers} - _OPEN_FLAGS.keys())
    opens = sorted(set(NUMBERS["create"]) & _OPEN_FLAGS.keys())

    def line(code: int, value: int, yes: int = 0, no: int = 0) -> bytes:
        return struct.pack("HBBI", code, yes, no, value)

    load, equal, has, give = 0x20, 0x15, 0x45, 0x06
    yield line(load, 0)
    for number in opens:
        yield line(equal, number, 0, 4)
        yield line(load, 16 + 8 * _OPEN_FLAGS[number])
        yield line(has, os.O_CREAT | os.O_TRUNC, 0, 1)
        yield line(give, _ASK)
        yield line(give, _ALLOW)
    for number in asked:
        yield line(equal, number, 0, 1)
        yield line(give, _ASK)
    yield line(equal, _PRCTL, 0, 3)
    yield line(load, 16)
    yield line(equal, _SET_DUMPABLE, 0, 1)
    yield line(give, _PRETEND)
    yield line(give, _ALLOW)


class _Call(NamedTuple):
    id: int
    pid: int
    number: int
    arguments: tuple[int, ...]


class _Watcher:
    """Answers the calls of one process and its children until none of them is left."""

    def __init__(self, listener: int, pid: int, root: Path, board: Board, decide: Callable[[Effect], Fate]) -> None:
        self._listener, self._pid, self._board, self._decide = listener, pid, board, decide
        self._prefix = f"{root}/"
        self._ops = {number: op for op, numbers in NUMBERS.items() for number in numbers}
        self._is_killed = False
        self.pending: _Call | None = None

    def serve(self) -> None:
        poll = select.poll()
        poll.register(self._listener, select.POLLIN)
        while found := poll.poll(_PATIENCE_S * 1000):
            if found[0][1] & select.POLLIN:
                self._serve_one()
                if self.pending:
                    return
            elif found[0][1] & select.POLLHUP:
                return
        os.killpg(self._pid, signal.SIGKILL)
        raise TimeoutError(f"the watched process did nothing for {_PATIENCE_S} s")

    def _serve_one(self) -> None:
        notice = bytearray(80)
        try:
            fcntl.ioctl(self._listener, _RECEIVE, notice)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.EINTR):
                return  # whoever asked is gone
            raise
        name, pid, _, number, _, _, *arguments = struct.unpack("QIIiIQ6Q", notice)
        call = _Call(name, pid, number, tuple(arguments))
        effect = None if self._is_killed else self._effect(call)
        fate: Fate = "go on" if effect is None else self._decide(effect)
        if fate == "tear" and call.number in (_WRITE, _PWRITE):
            self._write_half(call)
        if fate in ("kill", "tear"):
            self._is_killed = True
            for group in {self._pid, os.getpgid(call.pid)}:  # a git is in a session of its own
                os.killpg(group, signal.SIGKILL)
        else:
            if fate == "kill evolve alone":
                self._is_killed = True
                os.kill(self._pid, signal.SIGKILL)
                self.pending = call
                return
            self._answer(call, fate if isinstance(fate, int) else 0)

    def serve_orphan(self) -> None:
        """Let what outlived the watched process go on, a little later."""
        time.sleep(ORPHAN_PAUSE_S)
        call, self.pending = self.pending, None
        if call:
            self._answer(call, 0)
        self.serve()
        os.close(self._listener)

    def _answer(self, call: _Call, error: int) -> None:
        try:
            fcntl.ioctl(self._listener, _SEND, struct.pack("QqiI", call.id, 0, -error, 0 if error else _GO_ON))
        except OSError as failure:
            if failure.errno != errno.ENOENT:
                raise

    def _effect(self, call: _Call) -> Effect | None:
        """Return the effect that a call is going to have on the watched folder, or None."""
        op = self._ops[call.number]
        try:
            path = self._path(call, op)
        except OSError:
            return None  # a process that hides its memory has no files of ours, or is gone
        if not path.startswith(self._prefix) or self._is_nothing(op, path, call):
            return None
        program = Path(os.readlink(f"/proc/{call.pid}/exe")).name
        step, statement = self._board.read()
        is_row = ".sqlite" in path
        return Effect(op, path.removeprefix(self._prefix), step, statement if is_row else "", program)

    def _path(self, call: _Call, op: str) -> str:
        if op in ("write", "sync") or call.number in (77, 46):
            return os.readlink(f"/proc/{call.pid}/fd/{call.arguments[0]}")
        first = 1 if call.number in _BY_FOLDER else 0
        if op in ("rename", "link", "symlink"):  # the new name is the second one
            first = 1 + 2 * first if op != "symlink" else 1 + first
        path = self._text(call, call.arguments[first])
        if path.startswith("/"):
            return os.path.normpath(path)
        folder = ctypes.c_int(call.arguments[first - 1] & 0xFFFFFFFF).value if call.number in _BY_FOLDER else _AT_CWD
        place = "cwd" if folder == _AT_CWD else f"fd/{folder}"
        return os.path.normpath(os.path.join(os.readlink(f"/proc/{call.pid}/{place}"), path))

    @staticmethod
    def _text(call: _Call, address: int) -> str:
        with open(f"/proc/{call.pid}/mem", "rb", buffering=0) as memory:
            memory.seek(address)
            text = b""
            while b"\0" not in text:  # page by page: the next one may be nobody's
                text += memory.read(4096 - (address + len(text)) % 4096)
        return text.split(b"\0")[0].decode(errors="replace")

    @staticmethod
    def _is_nothing(op: str, path: str, call: _Call) -> bool:
        """Return whether a call would change nothing: what it makes is there, or what it removes is not."""
        if op == "remove":
            return not os.path.lexists(path)
        if op == "mkdir":
            return os.path.lexists(path)
        if op == "create" and call.number in _OPEN_FLAGS:
            is_emptying = call.arguments[_OPEN_FLAGS[call.number]] & os.O_TRUNC
            return os.path.lexists(path) and not (is_emptying and os.path.getsize(path))
        return False

    @staticmethod
    def _write_half(call: _Call) -> None:
        """Do the first half of a write in the caller's place."""
        descriptor, address, size, offset = call.arguments[:4]
        with open(f"/proc/{call.pid}/mem", "rb", buffering=0) as memory:
            memory.seek(address)
            half = memory.read(size // 2)
        if call.number == _WRITE:
            state = Path(f"/proc/{call.pid}/fdinfo/{descriptor}").read_text().split()
            is_appending = int(state[3], 8) & os.O_APPEND
            offset = os.stat(f"/proc/{call.pid}/fd/{descriptor}").st_size if is_appending else int(state[1])
        file = os.open(f"/proc/{call.pid}/fd/{descriptor}", os.O_WRONLY)
        try:
            os.pwrite(file, half, offset)
        finally:
            os.close(file)
