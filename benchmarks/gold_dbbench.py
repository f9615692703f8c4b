"""Plays DBBench's gold, and agents that do nothing, on an engine; prints one JSON line per engine.

python benchmarks/gold_dbbench.py --data FOLDER [--engine mysql://...] [--mariadb]

Without --engine the embedded one is played; --mariadb starts a server of its own from the installed binary.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from evolve.environments.data import BenchmarkData
from evolve.environments.dbbench import create
from evolve.environments.dbbench.benchmark import BENCHMARK
from evolve.environments.dbbench.entries import CHANGES, open_entries
from evolve.environments.dbbench.environment import DbBench
from evolve.environments.dbbench.gold import gold_calls
from evolve.environments.dbbench.session import COMMIT
from evolve.records import Call, Split, Task

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "environments"))
from mariadb import running_mariadb

EMPTY = Call(tool=COMMIT.name, arguments={"answers": ""})


class Times:
    """How long each kind of act took, in milliseconds."""

    def __init__(self) -> None:
        self.taken: dict[str, list[float]] = {"open": [], "step": [], "close": []}

    def of(self, act: str, function: Callable[..., object], *arguments: object) -> object:
        started = time.perf_counter()
        result = function(*arguments)
        self.taken[act].append((time.perf_counter() - started) * 1000)
        return result

    def medians(self) -> dict[str, float]:
        return {f"{act}_ms": round(statistics.median(taken), 2) for act, taken in self.taken.items()}


def succeeded(bench: DbBench, task: Task, calls: Sequence[Call], times: Times) -> tuple[bool, bool]:
    """Say whether a task is a success before anything is done, and after the calls."""
    session = times.of("open", bench.open, task, 0)
    before = session.score().success
    for call in calls:
        times.of("step", session.step, call)
    after = session.score().success
    times.of("close", session.close)
    return before, after


def play(folder: str, engine: str) -> dict[str, object]:
    bench = create({"data": folder, "engine": engine})
    entries = {entry.task_id: entry for entry in open_entries(BenchmarkData(BENCHMARK, folder))}
    tasks = [*bench.tasks(Split.TRAIN), *bench.tasks(Split.GUARD)]
    times, started = Times(), time.perf_counter()
    gold = [succeeded(bench, task, gold_calls(entries[task.task_id]), times) for task in tasks]
    seconds = round(time.perf_counter() - started, 2)
    missed = [task.task_id for task, (_, is_right) in zip(tasks, gold, strict=True) if not is_right]
    empty = [task for task in tasks if succeeded(bench, task, [EMPTY], Times())[1]]
    return {
        "benchmark": "dbbench",
        "engine": bench.card.version,
        "tasks": len(tasks),
        "not_offered": sorted(set(entries) - {task.task_id for task in tasks}),
        "gold": len(tasks) - len(missed),
        "missed": missed,
        "silent": sum(is_right for is_right, _ in gold),
        "empty_answer_to_questions": sum(task.family not in CHANGES for task in empty),
        "empty_answer_to_changes": sum(task.family in CHANGES for task in empty),
        "gold_s": seconds,
        **times.medians(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True)
    parser.add_argument("--engine", default="sqlite")
    parser.add_argument("--mariadb", action="store_true")
    chosen = parser.parse_args()
    if not chosen.mariadb:
        print(json.dumps(play(chosen.data, chosen.engine)))
        return
    with tempfile.TemporaryDirectory() as folder, running_mariadb(Path(folder)) as url:
        print(json.dumps(play(chosen.data, url)))


if __name__ == "__main__":
    main()
