"""What the rollout engine costs beside the bare client, measured in one run against an endpoint that takes 200 ms.

    python benchmarks/rollout.py [--episodes 200] [--latency-ms 200] [--repeats 1] [--json]

Ten model calls an episode; rules run in workers; completions, traces and ledger are written. Each case is a process
of its own. `ratio` is wall time over episodes * calls * latency / concurrency; `cpu_ms` is user and system time of the
process per call. Ends with status 1 where processor time or memory misses its target; wall ratios depend on what
else the machine does, so they are compared with their targets in the table only.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from ten_calls import CALLS, TOOL, TenCalls, benchmark_harness

LONG_BYTES = 84_000  # about 20k tokens
SHORT_BYTES = 400


@dataclass(frozen=True)
class Case:
    """One measurement and what it is held to; None where nothing is asked of it."""

    name: str
    client: str
    concurrency: int
    context_bytes: int
    most_ratio: float | None = None
    most_cpu_ms: float | None = None
    most_mb: float | None = None


CASES = (
    Case("floor, 50", "floor", 50, SHORT_BYTES),
    Case("floor, 100", "floor", 100, SHORT_BYTES),
    Case("floor, 100, 20k tokens", "floor", 100, LONG_BYTES),
    Case("engine, 50", "engine", 50, SHORT_BYTES, 1.10, 1.0, 150),
    Case("engine, 100", "engine", 100, SHORT_BYTES, 1.15, 1.0, 150),
    Case("engine, 100, 20k tokens", "engine", 100, LONG_BYTES, 1.15, 1.5, 150),
)


def main() -> int:
    """Measure all cases, print them, and say whether the targets hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=200)
    parser.add_argument("--latency-ms", type=float, default=200.0)
    parser.add_argument("--repeats", type=int, default=1, help="runs of each case; medians are reported")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--case", default="", help="measure one case only, in this process")
    parser.add_argument("--port", type=int, default=0, help="with --case: where the endpoint listens")
    options = parser.parse_args()
    if options.port:
        case = next(case for case in CASES if case.name == options.case)
        print(json.dumps(asyncio.run(measure(case, options.episodes, options.latency_ms, options.port))))
        return 0
    chosen = [case for case in CASES if options.case in case.name]
    with endpoint(options.latency_ms) as port:
        runs = [[run_case(case, options, port) for case in chosen] for _ in range(options.repeats)]
    rows = [summary(case, [run[number] for run in runs]) for number, case in enumerate(chosen)]
    print(json.dumps(document(rows, options), indent=2) if options.json else table(rows))
    return int(any(row["is_missed"] for row in rows))


@contextmanager
def endpoint(latency_ms: float) -> Iterator[int]:
    """Run the endpoint in a process of its own and give its port."""
    script = Path(__file__).with_name("mock_endpoint.py")
    command = [sys.executable, str(script), str(latency_ms)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield int(server.stdout.readline())


def run_case(case: Case, options: argparse.Namespace, port: int) -> dict[str, float]:
    """Measure a case in a process of its own."""
    arguments = {"case": case.name, "episodes": options.episodes, "latency-ms": options.latency_ms, "port": port}
    command = [sys.executable, __file__, *(f"--{name}={value}" for name, value in arguments.items())]
    measured: dict[str, float] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return measured


async def measure(case: Case, episodes: int, latency_ms: float, port: int) -> dict[str, float]:
    """Return the figures of one run of a case."""
    url = f"http://127.0.0.1:{port}/v1"
    if case.client == "floor":
        took = await measure_floor(case, episodes, url)
    else:
        with tempfile.TemporaryDirectory(prefix="evolve-benchmark-") as folder:
            took = await measure_engine(case, episodes, url, Path(folder))
    calls = episodes * CALLS
    ideal_s = calls * latency_ms / 1000 / case.concurrency
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "wall_s": took["wall_s"],
        "ratio": took["wall_s"] / ideal_s,
        "cpu_ms": took["cpu_s"] * 1000 / calls,
        "rules_cpu_ms": (children.ru_utime + children.ru_stime) * 1000 / calls,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "load": os.getloadavg()[0],
    }


async def timed(work: Callable[[], Awaitable[None]]) -> dict[str, float]:
    """Return the wall and processor seconds that some work took."""
    wall, cpu = time.perf_counter(), time.process_time()
    await work()
    return {"wall_s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu}


async def measure_floor(case: Case, episodes: int, url: str) -> dict[str, float]:
    """Do the same calls with aiohttp and orjson, and keep nothing."""
    import aiohttp
    import orjson

    environment = TenCalls(episodes, case.context_bytes)
    tasks = iter(environment.tasks("train"))  # type: ignore[arg-type]
    tools = [TOOL.function_schema()]

    async def drain(client: aiohttp.ClientSession) -> None:
        for task in tasks:
            session = environment.open(task, 0)
            messages: list[Any] = [{"role": "user", "content": session.opening.user}]
            for number in range(CALLS):
                body = orjson.dumps({"model": "mock", "messages": messages, "tools": tools})
                async with client.post(f"{url}/chat/completions", data=body) as answer:
                    message = orjson.loads(await answer.read())["choices"][0]["message"]
                call_id = message["tool_calls"][0]["id"]
                messages += [message, {"role": "tool", "tool_call_id": call_id, "content": f"Line {number}."}]

    async def work() -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(case.concurrency):
                group.create_task(drain(client))

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as client:
        return await timed(work)


async def measure_engine(case: Case, episodes: int, url: str, folder: Path) -> dict[str, float]:
    """Roll out as a run does."""
    from evolve.archive import Archive
    from evolve.harness.runtime import HarnessRuntime
    from evolve.harness.worker import WorkerPool
    from evolve.models.budget import Budget
    from evolve.models.cache import CompletionCache
    from evolve.models.cached import CachedModel
    from evolve.models.openai import OpenAIModel
    from evolve.models.settings import ModelSettings
    from evolve.progress import Silent
    from evolve.records import Split
    from evolve.rollout import Job, Rollout, RolloutLimits
    from evolve.store import Purpose
    from evolve.store.ledger import Ledger
    from evolve.traces import Traces

    environment = TenCalls(episodes, case.context_bytes)
    model = OpenAIModel(ModelSettings(id="mock", base_url=url, api_key_env=None), trusts_proxies=False)
    with Ledger(folder / "ledger.sqlite") as ledger, CompletionCache(folder / "completions.jsonl") as cache:
        ledger.start_run("run", environment="ten_calls", model="mock", base_commit="none", config={})
        archive = Archive(ledger, Traces(folder / "traces"))
        async with WorkerPool() as pool:
            runtime = HarnessRuntime(benchmark_harness(), pool)
            rollout = Rollout(
                environment,
                CachedModel(model, cache, budget=Budget()),
                archive.of_run("run"),
                limits=RolloutLimits(concurrency=case.concurrency),
                progress=Silent(),
                stop=asyncio.Event(),
            )
            jobs = [Job(task, 0, runtime, "") for task in environment.tasks(Split.TRAIN)]

            async def work() -> None:
                played = await rollout.roll_out(jobs, Purpose.BASELINE)
                whole = (True, CALLS, 2)
                assert {(e.is_success, e.requests_asked, len(e.firings)) for e in played} == {whole}

            took = await timed(work)
        await model.close()
        await archive.close()
    return took


def summary(case: Case, runs: list[dict[str, float]]) -> dict[str, Any]:
    """Return the medians of a case beside its targets."""
    measured = {name: round(median(run[name] for run in runs), 3) for name in runs[0]}
    held = ((case.most_cpu_ms, measured["cpu_ms"]), (case.most_mb, measured["peak_mb"]))
    is_missed = any(most is not None and value > most for most, value in held)
    return {**asdict(case), **measured, "runs": len(runs), "is_missed": is_missed}


def document(rows: list[dict[str, Any]], options: argparse.Namespace) -> dict[str, Any]:
    """Return everything as one JSON document."""
    return {
        "schema_version": 1,
        "episodes": options.episodes,
        "calls_per_episode": CALLS,
        "latency_ms": options.latency_ms,
        "processors": os.cpu_count(),
        "cases": rows,
    }


def table(rows: list[dict[str, Any]]) -> str:
    """Return the figures as text, each with its target."""
    lines = [f"{'':24}{'wall/ideal':>16}{'CPU ms/call':>16}{'rules ms/call':>15}{'peak MB':>14}{'load':>7}"]
    for row in rows:
        ratio, cpu = (beside(row[k], row[most]) for k, most in (("ratio", "most_ratio"), ("cpu_ms", "most_cpu_ms")))
        memory = beside(round(row["peak_mb"]), row["most_mb"])
        lines.append(f"{row['name']:24}{ratio:>16}{cpu:>16}{row['rules_cpu_ms']:>15.2f}{memory:>14}{row['load']:>7.1f}")
    return "\n".join(lines)


def beside(value: float, most: float | None) -> str:
    """Return a value with its target."""
    shown = f"{value:g}" if isinstance(value, int) else f"{value:.2f}"
    return shown if most is None else f"{shown} (<= {most:g})"


if __name__ == "__main__":
    sys.exit(main())
