"""A throw-away machine: namespaces, a writable layer in memory over the root file system, our supervisor inside.

Nothing is ever run in a sandbox from outside. `supervisor` starts as its process 1, checks where it is, and
takes commands over its standard input. Whatever does not go as agreed ends the sandbox: it fails closed.
"""

from __future__ import annotations

import base64
import json
import os
import secrets
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from importlib import resources

from evolve.environments.os_interaction.rootfs import HOST_NAME, NAME, Rootfs
from evolve.errors import ConfigError, EnvironmentBroken
from evolve.records import Json

PROGRAMS = ("bwrap", "unshare", "mount")
LAYER_SIZE = "512m"
START_S = 60.0
GRACE_S = 30.0
RIGHTS = (
    *("CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID", "CAP_KILL"),
    *("CAP_SETGID", "CAP_SETUID", "CAP_SYS_CHROOT", "CAP_AUDIT_WRITE", "CAP_SETFCAP"),
)
# The mounts live in a namespace of their own and go with its last process. `sh` stays as bwrap's parent:
# --die-with-parent follows the thread that starts a process, and threads of ours come and go.
LAUNCHER = f"""set -eu
cd "$1"; shift
mount -t tmpfs -o size={LAYER_SIZE},mode=755 {HOST_NAME} mount
mkdir mount/upper mount/work mount/merged
mount -t overlay -o lowerdir=root,upperdir=mount/upper,workdir=mount/work {HOST_NAME} mount/merged
bwrap --bind mount/merged / "$@"
"""
HIDDEN = ("kcore", "keys", "kmsg", "latency_stats", "sched_debug", "timer_list")
READER = "import sys; f = sys.stdin.buffer; exec(f.read(int(f.readline())))"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a command did.

    Attributes:
        output: of a program its standard output, of a script in the shell both its outputs.
        status: how a program ended, below 0 by a signal; 0 for a script.
        is_late: True where time ran out and it was stopped.
    """

    output: bytes
    status: int
    is_late: bool


def require_sandbox() -> None:
    """Make sure that sandboxes can be had here.

    Raises:
        ConfigError: not Linux, not root, or a program is missing.
    """
    if sys.platform != "linux":
        raise ConfigError(f"{NAME} needs Linux, its tasks run in namespaces; this is {sys.platform}")
    if os.geteuid() != 0:
        raise ConfigError(f"{NAME} needs root: its tasks write to /usr and /etc of an overlay and add users")
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if missing:
        raise ConfigError(f"{NAME} needs {', '.join(missing)} on PATH; `apt-get install bubblewrap util-linux mount`")


class Sandbox:
    """One running sandbox. Use from one thread at a time; `close` when done.

    Raises:
        EnvironmentBroken: it did not start.
    """

    def __init__(self, rootfs: Rootfs) -> None:
        self._words = tempfile.TemporaryFile()  # noqa: SIM115  `close` closes it
        self._process = subprocess.Popen(
            ["unshare", "--mount", "--propagation", "private", "sh", "-c", LAUNCHER, "sh", rootfs.folder, *_cage()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._words,
            start_new_session=True,
            bufsize=0,
        )
        source = resources.files(__package__).joinpath("supervisor.py").read_bytes()
        source += f"\nmain({rootfs.marker!r})\n".encode()
        self._send(b"%d\n%b" % (len(source), source))
        if self._receive(START_S) != {"ready": True}:
            raise self._broken("did not start")

    def script(self, text: str, timeout_s: float) -> Outcome:
        """Run a script in the agent's shell, which lasts from script to script.

        Raises:
            EnvironmentBroken: the sandbox has ended.
        """
        return self._ask({"script": text}, timeout_s)

    def program(self, argv: list[str], timeout_s: float) -> Outcome:
        """Run a program by itself in the home folder.

        Raises:
            EnvironmentBroken: the sandbox has ended.
        """
        return self._ask({"argv": argv}, timeout_s)

    def close(self) -> None:
        """End the sandbox and all that runs in it."""
        if self._process.stdin is None or self._process.stdin.closed:
            return
        self._process.stdin.close()
        try:
            self._process.wait(2)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._words.close()

    def _ask(self, request: Json, timeout_s: float) -> Outcome:
        mark = secrets.token_hex(16)
        self._send(json.dumps({**request, "mark": mark, "timeout_s": timeout_s}).encode() + b"\n")
        reply = self._receive(timeout_s + GRACE_S)
        if reply.get("mark") != mark:
            raise self._broken("gave no answer")
        return Outcome(base64.b64decode(reply["output"]), reply["status"], reply["is_late"])

    def _send(self, message: bytes) -> None:
        if self._process.stdin is None or self._process.stdin.closed:
            raise EnvironmentBroken(f"{NAME}: the sandbox is closed")
        try:
            while message:
                message = message[self._process.stdin.write(message) or 0 :]
        except BrokenPipeError as error:
            raise self._broken("has ended") from error

    def _receive(self, timeout_s: float) -> Json:
        """Read one line; an empty object stands for anything but one line of JSON in time."""
        assert self._process.stdout is not None
        deadline = time.monotonic() + timeout_s
        waiting = select.poll()
        waiting.register(self._process.stdout, select.POLLIN)
        line = b""
        while not line.endswith(b"\n"):
            is_ready = waiting.poll(max(0.0, deadline - time.monotonic()) * 1000)
            more = os.read(self._process.stdout.fileno(), 1 << 16) if is_ready else b""
            if not more:
                return {}
            line += more
        try:
            reply = json.loads(line)
        except ValueError:
            return {}
        return reply if isinstance(reply, dict) else {}

    def _broken(self, how: str) -> EnvironmentBroken:
        """End the sandbox and return the error to raise, with what the launcher said."""
        self._words.seek(0)
        words = self._words.read(400).decode("utf-8", "replace").strip()
        self.close()
        return EnvironmentBroken(f"{NAME}: the sandbox {how}" + (f": {words}" if words else ""))


def _cage() -> list[str]:
    """Return bubblewrap's arguments: what is shared with the host is its kernel."""
    spaces = [f"--unshare-{space}" for space in ("pid", "net", "ipc", "uts", "cgroup-try")]
    rights = [word for right in RIGHTS for word in ("--cap-add", right)]
    return [
        *("--die-with-parent", "--as-pid-1", *spaces, "--hostname", HOST_NAME),
        *("--cap-drop", "ALL", *rights),
        *("--proc", "/proc", *_proc_covers(), "--dev", "/dev", "--chdir", "/root", "--clearenv"),
        *("/usr/bin/python3", "-I", "-c", READER),
    ]


def _proc_covers() -> list[str]:
    """Return what makes all of /proc but the processes read-only: its files belong to root, and so does an agent.

    Bubblewrap covers some of it, but not /proc/sys, whose folder itself says that root may not write.
    """
    covers = []
    for entry in os.scandir("/proc"):
        if entry.name in HIDDEN:
            covers += ["--ro-bind", os.devnull, entry.path]
        elif not entry.name.isdecimal() and not entry.is_symlink():
            is_covered = entry.is_dir() or entry.stat().st_mode & 0o222
            covers += ["--ro-bind", entry.path, entry.path] if is_covered else []
    return covers
