"""A warm interpreter that holds no data of anyone and forks a worker whenever the host asks. Run as a script.

Usage: python -P -s -S -B zygote.py CONTROL_DESCRIPTOR PATH_OF_RULES
"""

from __future__ import annotations

import gc
import importlib.util
import io
import os
import select
import signal
import socket
import sys
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from evolve.harness.worker.child.orders import Layers

PACKAGE = "evolve.harness.worker.child"


def main() -> None:
    """Load what workers need, then serve the host until it hangs up."""
    control = socket.socket(fileno=int(sys.argv[1]))
    rules_path = sys.argv[2]
    del sys.argv[1:]
    _stand_back()
    _leave_signals_to_the_host()
    try:
        _load_rule_api(rules_path)
        from evolve.harness.worker.child import modules, orders, probes, rehearsal, serve  # noqa: F401

        modules.preload()
        serve.arm()
        rehearsal.play()
    except Exception as error:  # told to the host, which raises it
        control.sendall(f"{type(error).__name__}: {error}".encode())
        return
    gc.collect()
    gc.freeze()  # so that a worker's collections do not copy the pages it shares with us
    control.sendall(orders.READY)
    Nursery(control).run()


def _stand_back() -> None:
    """Let the host go on when it wakes a worker: one that took its processor at once would hold up all episodes.

    A policy that the user chose for all of evolve is left as it is.
    """
    if sys.platform == "linux" and os.sched_getscheduler(0) == os.SCHED_OTHER:
        with suppress(OSError):  # a place that forbids it is slower, no more
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


def _leave_signals_to_the_host() -> None:
    """Go on where all processes of a job or a service are asked to end: the host says when, by hanging up."""
    for asking in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(asking, signal.SIG_IGN)


def _load_rule_api(rules_path: str) -> None:
    """Register `evolve.rules` and this folder under bare packages, so that nothing else of the project can be found."""
    names = ["evolve", "evolve.harness", "evolve.harness.worker", PACKAGE]
    for name in names:
        package = sys.modules[name] = ModuleType(name)
        package.__path__ = []
    sys.modules[PACKAGE].__path__ = [str(Path(__file__).parent)]
    spec = importlib.util.spec_from_file_location("evolve.rules", rules_path)
    if spec is None or spec.loader is None:
        raise ImportError(f"no rule API at {rules_path}")
    rules = sys.modules["evolve.rules"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(rules)
    sys.modules["evolve"].rules = rules  # type: ignore[attr-defined]


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
        from evolve.harness.worker.child.orders import ORDER, Kind, Layers

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
    from evolve.harness.worker.child import sandbox, serve

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
    from evolve.harness.worker.child import probes, sandbox
    from evolve.harness.worker.child.orders import Layers

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


if __name__ == "__main__":
    main()
