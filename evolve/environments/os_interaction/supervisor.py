"""Process 1 of a sandbox: runs commands that come over its standard input and answers on its standard output.

`sandbox` sends this text into the sandbox and calls `main`; nothing imports it. Before anything else it makes
sure that it is where it belongs: the marker of the root file system, process id 1, no right to mount. Each
request carries a fresh mark that its answer repeats. When the input closes it ends, and with it all others.
"""

from __future__ import annotations

import base64
import ctypes
import json
import os
import resource
import select
import shlex
import signal
import time
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

MARKER = "/var/lib/evolve-rootfs"
ENVIRONMENT = {
    "HOME": "/root",
    "HOSTNAME": "box",
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "TERM": "xterm",
}
SYS_ADMIN = 1 << 21  # the capability's bit
SET_DUMPABLE = 4  # of prctl
KEPT_BYTES = 1 << 20  # of one command's output
FILE_BYTES = 512 << 20
MEMORY_BYTES = 2 << 30
DONE_FD = 250  # where a shell reports the end of a script; high, so that scripts do not meet it


def main(marker: str) -> NoReturn:
    """Check the place, shut the doors behind, and serve."""
    if not _is_sandbox(marker):
        os._exit(3)
    ctypes.CDLL(None).prctl(SET_DUMPABLE, 0, 0, 0, 0)  # scripts shall not write to our descriptors
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # which process 1 then never gets from inside
    for limit, value in {
        resource.RLIMIT_FSIZE: FILE_BYTES,
        resource.RLIMIT_AS: MEMORY_BYTES,
        resource.RLIMIT_CORE: 0,
    }.items():
        resource.setrlimit(limit, (value, value))
    requests, replies, null = os.dup(0), os.dup(1), os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    Supervisor(requests, replies).serve()


def _is_sandbox(marker: str) -> bool:
    try:
        with open(MARKER, encoding="ascii") as file:
            is_ours = file.read().strip() == marker
        with open("/proc/self/status", encoding="ascii") as file:
            rights = next(int(line.split()[1], 16) for line in file if line.startswith("CapEff"))
    except OSError:
        return False
    return is_ours and os.getpid() == 1 and not rights & SYS_ADMIN


class Supervisor:
    """The loop of process 1.

    Args:
        requests: descriptor of the requests; closed at the other end means: stop.
        replies: descriptor of the answers.
    """

    def __init__(self, requests: int, replies: int) -> None:
        self._requests = requests
        self._replies = replies
        self._unread = b""
        self._statuses: dict[int, int] = {}
        self._shell: Shell | None = None
        self._woken, wake = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def serve(self) -> NoReturn:
        """Answer requests until there are no more."""
        self._reply({"ready": True})
        while True:
            request = json.loads(self._next_line())
            answer = self._shell_script(request) if "script" in request else self._program(request)
            self._reply({"mark": request["mark"], **answer})

    def _shell_script(self, request: dict[str, Any]) -> dict[str, Any]:
        """Run a script in the lasting shell; a shell that ended, or ran out of time, is followed by a fresh one."""
        if self._shell is None or self._has_ended(self._shell.pid):
            self._shell = Shell()
        shell = self._shell
        shell.begin(request["script"], request["mark"])
        is_late = not self._wait(lambda: shell.is_done or self._has_ended(shell.pid), request["timeout_s"], shell)
        shell.read()
        if is_late:
            self._kill(shell.pid)
        if is_late or self._has_ended(shell.pid):
            shell.close()
            self._shell = None
        return _answer(bytes(shell.kept), status=0, is_late=is_late)

    def _program(self, request: dict[str, Any]) -> dict[str, Any]:
        """Run a program by itself. Its output goes to a file: a daemon left behind would keep a pipe open."""
        output = os.memfd_create("output", os.MFD_CLOEXEC)
        try:
            pid = _spawn(request["argv"], {1: output})
        except (OSError, ValueError) as error:
            return _answer(str(error).encode(), status=126, is_late=False)
        else:
            is_late = not self._wait(lambda: self._has_ended(pid), request["timeout_s"], None)
            if is_late:
                self._kill(pid)
            return _answer(os.pread(output, KEPT_BYTES, 0), status=self._statuses[pid], is_late=is_late)
        finally:
            os.close(output)

    def _wait(self, is_over: Callable[[], bool], timeout_s: float, shell: Shell | None) -> bool:
        """Wait until something is over; False where time ran out first."""
        deadline = time.monotonic() + timeout_s
        watched = [self._requests, self._woken, *(shell.watched if shell else ())]
        while not is_over():
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            ready, _, _ = select.select(watched, [], [], left)
            if self._requests in ready:
                os._exit(0)  # nothing is asked while a command runs: the other end is gone
            if self._woken in ready:
                os.read(self._woken, 4096)
            if shell:
                shell.read()
        return True

    def _has_ended(self, pid: int) -> bool:
        """Reap all that has ended, orphans too, and tell whether this child has."""
        try:
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                self._statuses[ended[0]] = os.waitstatus_to_exitcode(ended[1])
        except ChildProcessError:
            pass  # none is left
        return pid in self._statuses

    def _kill(self, leader: int) -> None:
        """Kill a child with all of its process group."""
        os.killpg(leader, signal.SIGKILL)
        while not self._has_ended(leader):
            select.select([self._woken], [], [], 0.05)

    def _next_line(self) -> bytes:
        while b"\n" not in self._unread:
            ready, _, _ = select.select([self._requests, self._woken], [], [])
            if self._woken in ready:
                os.read(self._woken, 4096)
                self._forget_orphans()
            if self._requests in ready:
                more = os.read(self._requests, 1 << 16)
                if not more:
                    os._exit(0)
                self._unread += more
        line, self._unread = self._unread.split(b"\n", 1)
        return line

    def _forget_orphans(self) -> None:
        shell = self._shell.pid if self._shell else 0
        self._has_ended(shell)
        self._statuses = {pid: status for pid, status in self._statuses.items() if pid == shell}

    def _reply(self, reply: dict[str, Any]) -> None:
        rest = json.dumps(reply).encode() + b"\n"
        while rest:
            rest = rest[os.write(self._replies, rest) :]


class Shell:
    """A bash that lasts from script to script; its folder, variables and functions stay.

    A script runs as the handler of a signal that the shell sends itself: so it runs in the shell, is read as
    a whole, has lines that count from 1 in bash's own messages, and an empty standard input.
    """

    def __init__(self) -> None:
        scripts, self._scripts = os.pipe2(os.O_CLOEXEC)
        self._output, output = os.pipe2(os.O_CLOEXEC)
        self._done, done = os.pipe2(os.O_CLOEXEC)
        for descriptor in self.watched:
            os.set_blocking(descriptor, False)
        self.pid = _spawn(["bash", "--login"], {0: scripts, 1: output, 2: output, DONE_FD: done})
        os.close(scripts)
        self._held = output, done  # so that a shell that closes its own does not end what we read
        self.kept = bytearray()
        self.is_done = False
        self._mark = b""
        self._reports = b""

    @property
    def watched(self) -> tuple[int, int]:
        """Descriptors that can be read while a script runs."""
        return self._output, self._done

    def begin(self, script: str, mark: str) -> None:
        """Start a script; it has ended when the shell reports the mark."""
        self.read()
        self.kept.clear()
        self.is_done, self._mark, self._reports = False, mark.encode(), b""
        line = (
            f"builtin trap -- {shlex.quote(script)} USR1; {{ builtin kill -USR1 $$; :; }} </dev/null; "
            f"builtin printf '%s\\n' {mark} >&{DONE_FD}\n"
        )
        rest = line.encode("utf-8", "replace")
        try:
            while rest:
                rest = rest[os.write(self._scripts, rest) :]
        except BrokenPipeError:
            self.is_done = True  # it has just ended

    def read(self) -> None:
        """Take what is there; output beyond what is kept is dropped."""
        self._reports = (self._reports + _available(self._done))[-4096:]
        self.is_done = self.is_done or self._mark + b"\n" in self._reports
        self.kept += _available(self._output)[: KEPT_BYTES - len(self.kept)]

    def close(self) -> None:
        """Release the descriptors."""
        for descriptor in (self._scripts, *self.watched, *self._held):
            os.close(descriptor)


def _available(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 1 << 20)
    except BlockingIOError:
        return b""


def _spawn(argv: Sequence[str], descriptors: dict[int, int]) -> int:
    """Start a program in a session of its own; what has no descriptor given is /dev/null."""
    actions = [(os.POSIX_SPAWN_DUP2, source, target) for target, source in descriptors.items()]
    words = [word.encode("utf-8", "replace") for word in argv]
    _be_killed_first(1000)
    try:
        return os.posix_spawnp(
            words[0],
            words,
            ENVIRONMENT,
            file_actions=actions,
            setsid=True,
            setsigdef=[signal.SIGPIPE, signal.SIGXFSZ],  # which Python ignores
        )
    finally:
        _be_killed_first(0)


def _be_killed_first(points: int) -> None:
    """Set what the kernel goes by when memory runs out; a child inherits it."""
    with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
        file.write(str(points))


def _answer(output: bytes, *, status: int, is_late: bool) -> dict[str, Any]:
    return {"output": base64.b64encode(output).decode(), "status": status, "is_late": is_late}
