"""The life of the zygote once it is warm: forks workers as the host orders, ends them, and reaps the dead."""

import io
import os
import select
import signal
import socket
from typing import NoReturn

from evolve.harness.worker.child import probes, sandbox, serve
from evolve.harness.worker.child.orders import ORDER, Kind, Layers


class Nursery:
    """The workers that live, by number. Knows when each dies and never signals a process id that it has reaped."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._alive: dict[int, int] = {}
        self._woken, self._waking = os.pipe()
        os.set_blocking(self._waking, False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.set_wakeup_fd(self._waking, warn_on_full_buffer=False)

    def run(self) -> None:
        """Obey orders and reap the dead until the host hangs up; then end all workers."""
        waiting = select.poll()  # `select` knows no descriptor above 1023, and the host may have many open
        for descriptor in (self._control.fileno(), self._woken):
            waiting.register(descriptor, select.POLLIN)
        while True:
            ready = {descriptor for descriptor, _ in waiting.poll()}
            if self._woken in ready:
                os.read(self._woken, 4096)
                self._reap()
            if self._control.fileno() in ready and not self._obey():
                break
        for process in self._alive.values():
            _kill(process)

    def _obey(self) -> bool:
        message, descriptors, _, _ = socket.recv_fds(self._control, ORDER.size, 2)
        if len(message) < ORDER.size:
            return False
        kind, layers, number = ORDER.unpack(message)
        if kind == Kind.KILL:
            process = self._alive.get(number)
            if process is not None:
                _kill(process)
        else:
            self._fork(number, descriptors, Layers(layers), is_test=kind == Kind.SELF_TEST)
        return True

    def _fork(self, number: int, pipes: list[int], layers: Layers, *, is_test: bool) -> None:
        zygote = os.getpid()
        try:
            process = os.fork()
        except OSError:  # the host sees its pipes close
            process = -1
        if process == 0:
            self._become_worker(pipes, layers, zygote, is_test=is_test)
        for descriptor in pipes:
            os.close(descriptor)
        if process > 0:
            self._alive[number] = process

    def _become_worker(self, pipes: list[int], layers: Layers, zygote: int, *, is_test: bool) -> NoReturn:
        try:
            signal.set_wakeup_fd(-1)
            self._control.detach()
            live(pipes, layers, zygote, is_test=is_test)
        finally:
            os._exit(0)

    def _reap(self) -> None:
        while self._alive:
            dead = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if dead is None:
                return
            _kill(dead.si_pid)  # what it left in its group, while its number cannot be another's
            os.waitpid(dead.si_pid, 0)
            self._alive = {n: p for n, p in self._alive.items() if p != dead.si_pid}


def _kill(process: int) -> None:
    for kill in (os.killpg, os.kill):
        try:
            kill(process, signal.SIGKILL)
        except OSError:
            continue


def live(pipes: list[int], layers: Layers, zygote: int, *, is_test: bool) -> None:
    """Be a worker: lock the door behind us, say so, and serve. A layer that fails is said instead."""
    sandbox.keep_only(*pipes)
    channel = io.BufferedReader(io.FileIO(sandbox.INCOMING), serve.READ_BYTES)
    sandbox.detach(zygote)
    sandbox.limit()
    if is_test:
        return serve.send(_self_test(layers))
    try:
        sandbox.restrict(layers)
    except OSError as error:
        return serve.send({"refused": str(error)})
    serve.write(b'{"ready":%d}' % layers)
    serve.serve(channel)
    return None


def _self_test(layers: Layers) -> dict[str, object]:
    """Put on each layer that can be had and try the probes under it."""
    refused: dict[str, str] = {}
    open_before = probes.succeeding(probes.FILES)
    open_after: dict[str, list[str]] = {}
    for layer in (Layers.LANDLOCK, Layers.SECCOMP):
        if layer not in layers:
            refused[str(layer.name)] = "not asked for"
            continue
        try:
            sandbox.restrict(layer)
        except OSError as error:
            refused[str(layer.name)] = str(error)
        else:
            open_after[str(layer.name)] = probes.succeeding(probes.FILES if layer is Layers.LANDLOCK else probes.ALL)
    return {"refused": refused, "before": open_before, "after": open_after, "open": probes.succeeding(probes.ALL)}
