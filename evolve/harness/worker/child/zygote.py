"""A warm interpreter that holds no data of anyone and forks a worker whenever the host asks. Run as a script.

Usage: python -P -s -S -B zygote.py CONTROL_DESCRIPTOR PATH_OF_RULES
"""

from __future__ import annotations

import gc
import importlib.util
import os
import signal
import socket
import sys
from contextlib import suppress
from pathlib import Path
from types import ModuleType

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
        from evolve.harness.worker.child import modules, nursery, orders, rehearsal, serve

        modules.preload()
        serve.arm()
        rehearsal.play()
    except Exception as error:  # told to the host, which raises it
        control.sendall(f"{type(error).__name__}: {error}".encode())
        return
    gc.collect()
    gc.freeze()  # so that a worker's collections do not copy the pages it shares with us
    control.sendall(orders.READY)
    nursery.Nursery(control).run()


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


if __name__ == "__main__":
    main()
