"""The host's handle on the zygote: spawns it, sends it orders, ends it. One zygote serves many workers."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from pathlib import Path

import evolve.rules
from evolve.errors import WorkerError
from evolve.harness.worker import seatbelt
from evolve.harness.worker.channel import Pipes, pipes
from evolve.harness.worker.child import zygote
from evolve.harness.worker.child.orders import ORDER, READY, Kind, Layers

BOOT_TIMEOUT_S = 20.0
ORDER_TIMEOUT_S = 2.0
FLAGS = ("-P", "-s", "-S", "-B")
"""As `-I`, but PYTHONHASHSEED is heeded: the order of a set of strings must not differ between workers."""


class Zygote:
    """A warm interpreter in a process of its own, with an empty environment, that forks workers on order."""

    def __init__(self, process: subprocess.Popen[bytes], control: socket.socket) -> None:
        self._process = process
        self._control = control
        self._numbers = 0

    @classmethod
    async def spawn(cls) -> Zygote:
        """Start a zygote and wait until it can fork.

        Raises:
            WorkerError: it does not start.
        """
        try:
            ours, process = _start()
        except OSError as error:
            raise WorkerError(f"the rule zygote did not start: {error.strerror}") from error
        new = cls(process, ours)
        try:
            await new._wait_until_ready()
        except BaseException:
            new.kill()
            raise
        return new

    async def _wait_until_ready(self) -> None:
        self._control.setblocking(False)
        try:
            async with asyncio.timeout(BOOT_TIMEOUT_S):
                word = await asyncio.get_running_loop().sock_recv(self._control, 4096)
        except TimeoutError:
            raise WorkerError(f"the rule zygote was not ready within {BOOT_TIMEOUT_S} s") from None
        if word != READY:
            raise WorkerError(f"the rule zygote did not start: {word.decode(errors='replace') or 'it died'}")
        self._control.settimeout(ORDER_TIMEOUT_S)

    @property
    def process_id(self) -> int:
        """The zygote's process id."""
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """True while it runs."""
        return self._process.poll() is None

    def fork(self, kind: Kind, layers: Layers) -> tuple[int, Pipes]:
        """Order a worker; return its number and our ends of the pipes that it will speak on.

        Raises:
            OSError: the zygote is gone, or there are too many open files.
        """
        self._numbers += 1
        order = ORDER.pack(kind, layers, self._numbers)
        ours, theirs = pipes()
        try:
            socket.send_fds(self._control, [order], theirs)
        except OSError:
            ours.close()
            raise
        finally:
            theirs.close()
        return self._numbers, ours

    def end_worker(self, number: int) -> None:
        """Order the end of a worker and all of its process group. Workers of a dead zygote are dead already."""
        try:
            self._control.send(ORDER.pack(Kind.KILL, Layers.NONE, number))
        except OSError:
            return

    async def close(self) -> None:
        """Hang up, which ends the zygote and its workers, and wait for it."""
        self._control.close()
        for _ in range(200):
            if not self.is_alive:
                return
            await asyncio.sleep(0.005)
        self.kill()

    def kill(self) -> None:
        """End it at once; the kernel ends its workers."""
        self._control.close()
        self._process.kill()
        self._process.wait()


def _start() -> tuple[socket.socket, subprocess.Popen[bytes]]:
    ours, theirs = socket.socketpair()
    script, rules = Path(zygote.__file__), Path(evolve.rules.__file__)
    environment = {"PATH": os.defpath, "PYTHONHASHSEED": "0"}
    environment["LD_BIND_NOW"] = "1"  # or each fork looks up the functions of the C library that it calls first
    command = [sys.executable, *FLAGS, str(script), str(theirs.fileno()), str(rules)]
    if seatbelt.is_available():
        command = seatbelt.wrapped(command, (Path(sys.base_prefix), script.parent, rules))
    try:
        with theirs:
            process = subprocess.Popen(
                command,
                env=environment,
                cwd="/",
                start_new_session=True,  # a terminal's Ctrl-C asks the host to stop, and the episode goes to its end
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
    except OSError:
        ours.close()
        raise
    return ours, process
