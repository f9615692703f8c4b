"""Reset, step and score times and the memory of every environment that can be used here.

    python benchmarks/environments.py --data DIR        # DIR holds a folder for each benchmark, e.g. DIR/dbbench
    python benchmarks/environments.py dbbench webshop --tasks 20

Each environment runs in a process of its own: open a task, make seeded calls that fit the schemas, score, close; then
the medians, the 95th percentile of a step, and the peak of resident memory, in one JSON line each. Beside them stand
the figures of upstream's own code, measured once on two cores of the same kind of machine with other work going on.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

from evolve.assembly import make_environment, ready_environments
from evolve.bench import find_benchmark
from evolve.environments.conformance import nonsense
from evolve.errors import UserError
from evolve.records import Json, Split

UPSTREAM: dict[str, Json] = {
    "tau2_airline": {"open_ms": [160, 300], "score_ms": [700, 800]},
    "tau2_retail": {"open_ms": 54, "score_ms": [250, 540]},
    "tau2_telecom": {"open_ms": 4, "step_ms": 0.03, "score_ms": 8},
    "alfworld": {"open_ms": 2460, "step_ms": 70, "step_p95_ms": 170, "peak_mb": 463},
    "webshop": {"open_ms": 3.5, "step_ms": 24, "step_p95_ms": 60, "peak_mb": 213},
    "os_interaction": {"open_ms": [35, 67]},
    "dbbench": {"open_ms": 0.8, "step_ms": 0.4},
}


def measure(name: str, options: Json, count: int) -> Json:
    """Return the figures of one environment, in this process."""
    started = time.perf_counter()
    environment = make_environment(name, options)
    tasks = list(environment.tasks(Split.TRAIN))
    made = time.perf_counter() - started
    stride = max(1, len(tasks) // count)
    opened, stepped, scored = [], [], []
    for task in tasks[::stride][:count]:
        begin = time.perf_counter()
        session = environment.open(task, 0)
        opened.append(time.perf_counter() - begin)
        for call in nonsense(session.tools, task.task_id):
            begin = time.perf_counter()
            observation = session.step(call)
            stepped.append(time.perf_counter() - begin)
            if observation.done:
                break
        begin = time.perf_counter()
        session.score()
        scored.append(time.perf_counter() - begin)
        session.close()
    usage = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return {
        "environment": name,
        "version": environment.card.version,
        "tasks": len(opened),
        "make_ms": _ms(made),
        "open_ms": _ms(statistics.median(opened)),
        "step_ms": _ms(statistics.median(stepped)),
        "step_p95_ms": _ms(statistics.quantiles(stepped, n=20)[-1]),
        "score_ms": _ms(statistics.median(scored)),
        "peak_mb": round(usage[0] / 1024),
        "peak_child_mb": round(usage[1] / 1024),
        "upstream": UPSTREAM.get(name),
    }


def _ms(seconds: float) -> float:
    return float(f"{seconds * 1000:.3g}")


def options_of(name: str, data: Path | None) -> Json:
    """Return where the data of an environment is, below a folder of all benchmarks."""
    if data is None:
        return {}
    try:
        folder = data / find_benchmark(name).name
    except UserError:
        return {}
    return {"data": str(folder)} if folder.is_dir() else {}


def main() -> None:
    """Measure each environment in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="environments; by default all that can be used here")
    parser.add_argument("--data", type=Path, help="a folder with one folder for each benchmark")
    parser.add_argument("--tasks", type=int, default=12)
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.here:
        (name,) = chosen.names
        print(json.dumps(measure(name, options_of(name, chosen.data), chosen.tasks)))
        return
    for name in chosen.names or ready_environments():
        command = [sys.executable, __file__, name, "--here", "--tasks", str(chosen.tasks)]
        command += ["--data", str(chosen.data)] if chosen.data else []
        subprocess.run(command, check=False)


if __name__ == "__main__":
    main()
