"""Plays gold and nothing on OS interaction's dev tasks and first training tasks, in real sandboxes.

    python benchmarks/gold_os.py [--data FOLDER] [--rootfs FOLDER] [--train 200] [--host]

Prints one line of JSON: how many gold replays score 1, which do not, what doing nothing scores, times in seconds.
With --host it also lists what changed meanwhile in the host's own folders (other programs may have done so) and fails
where a user was added. Ends with status 1 where a gold replay misses that is not named here.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from contextlib import closing
from pathlib import Path
from statistics import median

from evolve.environments.data import BenchmarkData
from evolve.environments.os_interaction import create
from evolve.environments.os_interaction.benchmark import BENCHMARK, DEV, TRAIN
from evolve.environments.os_interaction.environment import OsInteraction
from evolve.environments.os_interaction.gold import KNOWN_MISSES, play
from evolve.environments.os_interaction.problems import read_problems
from evolve.records import Call, Split

HOST = ("/bin", "/boot", "/etc", "/home", "/lib", "/opt", "/sbin", "/srv", "/usr", "/var/lib", "/var/log", "/var/spool")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="folder of the task files")
    parser.add_argument("--rootfs", help="folder of the root file system")
    parser.add_argument("--train", type=int, default=200, help="how many of the first training tasks")
    parser.add_argument("--host", action="store_true", help="list what changed on the host")
    chosen = parser.parse_args()
    options = {name: value for name in ("data", "rootfs") if (value := getattr(chosen, name))}
    stamp, users = time.time(), Path("/etc/passwd").read_bytes()
    files = BenchmarkData(BENCHMARK, options.get("data"))
    wanted = {
        "dev": [problem.task_id for problem in read_problems(files, DEV)],
        "train": [problem.task_id for problem in read_problems(files, TRAIN)][: chosen.train],
    }
    report: dict[str, object] = {"schema_version": 1, "benchmark": "os_interaction"}
    misses: list[str] = []
    for name, ids in wanted.items():
        made = create({**options, "set": name, "timeout_s": 120})
        report[name], missed = replay(made, ids)
        misses += missed
    if chosen.host:
        report["host_users_unchanged"] = Path("/etc/passwd").read_bytes() == users
        report["host_changed"] = changed_since(stamp)
    print(json.dumps(report))
    return int(bool(set(misses) - KNOWN_MISSES.keys()) or report.get("host_users_unchanged") is False)


def replay(made: OsInteraction, ids: list[str]) -> tuple[dict[str, object], list[str]]:
    tasks = {task.task_id: task for split in (Split.TRAIN, Split.GUARD) for task in made.tasks(split)}
    misses, nothing, opening, scoring = [], 0, [], []
    for number, task_id in enumerate(ids):
        print(f"{number} of {len(ids)}, {len(misses)} missed", end="\r", file=sys.stderr)
        task = tasks[task_id]
        started = time.perf_counter()
        with closing(made.open(task, 0)) as session:
            opened = time.perf_counter()
            if not play(made.problem(task), session).success:
                misses.append(task_id)
            opening.append(opened - started)
            scoring.append(time.perf_counter() - opened)
        with closing(made.open(task, 0)) as session:
            session.step(Call(tool="finish_action", arguments={"thought": "nothing to do"}))
            nothing += session.score().success
    figures = {
        "tasks": len(ids),
        "gold": len(ids) - len(misses),
        "missed": {task_id: KNOWN_MISSES.get(task_id, "not known") for task_id in misses},
        "do_nothing": nothing,
        "open_s": round(median(opening), 3),
        "play_and_score_s": round(median(scoring), 3),
    }
    return figures, misses


def changed_since(stamp: float) -> list[str]:
    """List the paths in the host's own folders whose content or attributes are newer than a time."""
    changed = []
    for folder in HOST:
        for where, _, files in os.walk(folder):
            for path in (where, *(os.path.join(where, name) for name in files)):
                try:
                    if os.lstat(path).st_ctime > stamp:
                        changed.append(path)
                except OSError:
                    continue
    return sorted(set(changed))


if __name__ == "__main__":
    sys.exit(main())
