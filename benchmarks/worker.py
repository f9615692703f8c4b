"""What the process boundary around rule code costs, beside the same rule in process and a bare echo, in one run.

The echo exchanges as many bytes with a process that does nothing with them. It takes what waking two processes in turn
takes on this machine, and no call can be faster.

    python benchmarks/worker.py [--episodes 2000] [--calls 5000] [--json]

Ends with status 1 where episodes leave processes, descriptors or memory behind.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import selectors
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from evolve.harness.worker import RuleWorker, WorkerPool, delta_json, opening_json
from evolve.records import Call, Layer
from evolve.rules import Call as RuleCall
from evolve.rules import View

SOURCE = """
from evolve.rules import PASS, Rewrite, action_rule

@action_rule(id="action.copy", strength="rewrite", evidence="a benchmark")
def copy(view, memory):
    memory["calls"] = memory.get("calls", 0) + 1
    return Rewrite("write", {"text": view.proposed.arguments["text"][:1000]}) if view.proposed else PASS
"""
IN_BYTES, OUT_BYTES = 4_000, 1_000


def main() -> int:
    """Measure, print, and say whether anything was left behind."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=2000)
    parser.add_argument("--calls", type=int, default=5000)
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()
    measured = asyncio.run(measure(options.episodes, options.calls))
    print(json.dumps(measured, indent=2) if options.json else table(measured))
    left = measured["left_behind"]
    return int(left["processes"] > 0 or left["descriptors"] > 0 or left["memory_kib"] > 4096)


async def measure(episodes: int, calls: int) -> dict[str, Any]:
    """Return all figures: starts in milliseconds, calls in microseconds."""
    began = time.perf_counter()
    async with WorkerPool() as pool:
        boot_ms = (time.perf_counter() - began) * 1e3
        await run_episode(pool)
        before = footprint(pool)
        starts = [await timed(lambda: run_episode(pool)) for _ in range(episodes)]
        after = await settled(pool, before)
        worker = await pool.start_episode({"action.py": SOURCE}, opening_json("task", (), 30))
        over = [await timed(lambda: ask(worker)) for _ in range(calls)]
        await worker.close()
        return {
            "schema_version": 1,
            "tier": pool.tier,
            "load_average": os.getloadavg()[0],
            "processors": os.cpu_count(),
            "boot_ms": round(boot_ms, 1),
            "start_ms": spread(starts, 1e3),
            "call_us": spread(over, 1e6),
            "echo_us": spread(echo(calls), 1e6),
            "in_process_call_us": spread(in_process(calls), 1e6),
            "episodes": episodes,
            "left_behind": {key: after[key] - before[key] for key in before},
        }


async def run_episode(pool: WorkerPool) -> None:
    """Start a worker, load the rule, end it."""
    worker = await pool.start_episode({"action.py": SOURCE}, opening_json("task", (), 30))
    assert worker.load_error is None
    await worker.close()


PROPOSED = Call(tool="write", arguments={"text": "x" * IN_BYTES})
DELTA = delta_json(steps=(), text="", proposed=PROPOSED, admissible=None, steps_left=3)


async def ask(worker: RuleWorker) -> None:
    """Ask the rule once and check the answer."""
    (reply,) = await worker.run(Layer.ACTION, ["action.copy"], DELTA)
    assert len(reply.arguments["text"]) == 1000


def in_process(calls: int) -> list[float]:
    """Time the same rule, with the same view, as a plain function call."""
    namespace: dict[str, Any] = {}
    exec(compile(SOURCE, "action.py", "exec"), namespace)
    rule = namespace["copy"]
    memory: dict[str, Any] = {}
    times: list[float] = []
    for _ in range(calls):
        began = time.perf_counter()
        call = RuleCall("write", PROPOSED.arguments)
        rule(View("task", (), (), "", call, None, 3, 30), memory)
        times.append(time.perf_counter() - began)
    return times


def echo(calls: int) -> list[float]:
    """Time the exchange of 4 KB for 1 KB with a process that waits to read them, as this one then does."""
    (theirs, ours_out), (ours, theirs_out) = os.pipe(), os.pipe()
    question, answer = b"x" * IN_BYTES, b"x" * OUT_BYTES
    child = os.fork()
    if child == 0:
        try:
            os.close(ours_out)
            while os.read(theirs, IN_BYTES):
                os.write(theirs_out, answer)
        finally:
            os._exit(0)
    os.set_blocking(ours, False)
    times: list[float] = []
    with selectors.DefaultSelector() as waiting:
        waiting.register(ours, selectors.EVENT_READ)
        for _ in range(calls):
            began = time.perf_counter()
            os.write(ours_out, question)
            waiting.select()
            assert len(os.read(ours, OUT_BYTES)) == OUT_BYTES
            times.append(time.perf_counter() - began)
    for descriptor in (theirs, ours_out, ours, theirs_out):
        os.close(descriptor)
    os.waitpid(child, 0)
    return times


async def timed(action: Callable[[], Awaitable[None]]) -> float:
    """Return the seconds that an action took."""
    began = time.perf_counter()
    await action()
    return time.perf_counter() - began


def footprint(pool: WorkerPool) -> dict[str, int]:
    """Count the zygote's children, the descriptors of host and zygote, and their resident memory."""
    zygote = pool.zygote_process_id
    pages = sum(int(Path(f"/proc/{process}/statm").read_text().split()[1]) for process in ("self", zygote))
    return {
        "processes": len(Path(f"/proc/{zygote}/task/{zygote}/children").read_text().split()),
        "descriptors": sum(len(os.listdir(f"/proc/{process}/fd")) for process in ("self", zygote)),
        "memory_kib": pages * os.sysconf("SC_PAGE_SIZE") // 1024,
    }


async def settled(pool: WorkerPool, before: dict[str, int]) -> dict[str, int]:
    """Return the footprint once the last workers have been reaped."""
    for _ in range(200):
        if footprint(pool)["processes"] > before["processes"]:
            await asyncio.sleep(0.01)
    return footprint(pool)


def spread(times: list[float], scale: float) -> dict[str, float]:
    """Return minimum, median and 95th percentile."""
    ordered = sorted(times)
    marks = {"min": ordered[0], "median": statistics.median(ordered), "p95": ordered[int(len(ordered) * 0.95)]}
    return {name: round(value * scale, 2) for name, value in marks.items()}


def table(measured: dict[str, Any]) -> str:
    """Return the figures as text."""
    rows = [f"{'':24}{'min':>10}{'median':>10}{'p95':>10}"]
    titles = {
        "start, ms": "start_ms",
        "call, us": "call_us",
        "echo, us": "echo_us",
        "in process, us": "in_process_call_us",
    }
    for title, key in titles.items():
        rows.append(f"{title:24}" + "".join(f"{value:>10}" for value in measured[key].values()))
    left = ", ".join(f"{count} {what}" for what, count in measured["left_behind"].items())
    rows.append(f"tier {measured['tier']}; pool ready in {measured['boot_ms']} ms; load {measured['load_average']:.1f}")
    rows.append(f"left behind after {measured['episodes']} episodes: {left}")
    return "\n".join(rows)


if __name__ == "__main__":
    sys.exit(main())
