"""Gold through the τ² adapters: success, outputs and hashes against a recording, doing nothing beside it, and times.

    python benchmarks/gold_tau2.py --data FOLDER [--only airline] [--hashes]

One JSON line for each environment and version of its texts. FOLDER holds `DOMAIN/golden_train.jsonl` where outputs
are to be compared; hashing as upstream does takes most of the time, so it must be asked for.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

from evolve.environments.tau2.environment import Tau2, create
from evolve.environments.tau2.gold import gold_actions, gold_script, play_gold
from evolve.records import Call, Split, Task

SETTINGS = (
    ("airline", {"texts": "v0.2.0"}),
    ("airline", {"texts": "1.0.1"}),
    ("retail", {"texts": "v0.2.0"}),
    ("retail", {"texts": "1.0.1", "judge": "none"}),
    ("telecom", {}),
    ("telecom", {"user": "scripted"}),
)


class Clock:
    """Adds up how long things took, by name."""

    def __init__(self) -> None:
        self.seconds: dict[str, list[float]] = {}

    @contextmanager
    def time(self, name: str):
        started = time.perf_counter()
        yield
        self.seconds.setdefault(name, []).append(time.perf_counter() - started)

    def medians_ms(self) -> dict[str, float]:
        return {f"{name}_ms": round(1000 * sorted(all_)[len(all_) // 2], 3) for name, all_ in self.seconds.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--hashes", action="store_true")
    asked = parser.parse_args()
    for domain, options in SETTINGS:
        if asked.only in domain:
            print(json.dumps(measure(domain, {"data": asked.data, **options}, with_hashes=asked.hashes)), flush=True)


def measure(domain: str, options: dict[str, object], *, with_hashes: bool) -> dict[str, object]:
    clock = Clock()
    with clock.time("make"):
        environment = with_script(domain, options) if options.get("user") else create(domain, options)
    tasks = [task for split in (Split.TRAIN, Split.GUARD) for task in environment.tasks(split)]
    with clock.time("first_open"):
        environment.open(tasks[0], 0)
    gold = 0
    for task in tasks:
        session = play_gold(environment, task)
        session.score()
        with clock.time("score"):
            gold += session.score().success
    result = {"environment": environment.name, "setting": str(options.get("user", "none")), "tasks": len(tasks)}
    result |= {"version": environment.version, "gold": gold}
    if not options.get("user"):
        result |= {"do_nothing": sum(do_nothing(environment, task) for task in tasks)}
        recorded = read_recording(options["data"], domain)
        result |= compare(environment, tasks, recorded, clock, with_hashes=with_hashes) if recorded else {}
    resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return result | clock.medians_ms() | {"resident_mb": round(resident)}


def with_script(domain: str, options: dict[str, object]) -> Tau2:
    plain = create(domain, {name: value for name, value in options.items() if name != "user"})
    official = [plain.official(task) for split in (Split.TRAIN, Split.GUARD) for task in plain.tasks(split)]
    path = Path(tempfile.mkdtemp()) / "gold.json"
    path.write_text(json.dumps({task["id"]: gold_script(task) for task in official}), encoding="utf-8")
    return create(domain, {**options, "user": {"script": path}})


def do_nothing(environment: Tau2, task: Task) -> bool:
    session = environment.open(task, 0)
    session.step(Call(tool="done", arguments={}))
    return session.score().success


def read_recording(folder: object, domain: str) -> dict[str, dict]:
    """Return what tau2 itself did, by task; nothing where it was not recorded."""
    path = Path(str(folder)) / domain / "golden_train.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    return {record["task_id"]: record for record in map(json.loads, lines)}


def compare(
    environment: Tau2, tasks: list[Task], recorded: dict[str, dict], clock: Clock, *, with_hashes: bool
) -> dict:
    """Play the recorded calls and count the tasks whose outputs, error flags and hashes are the recorded ones."""
    outputs = hashes = same_actions = 0
    for task in tasks:
        official = environment.official(task)
        record = recorded[official["id"]]
        with clock.time("open"):
            session = environment.open(task, 0)
        is_equal = True
        for step in record["steps"]:
            with clock.time("step"):
                seen = session.step(Call(tool=step["name"], arguments=step["arguments"]))
            is_equal &= seen.text == step["content"] and (not step["error"] or seen.error_kind is not None)
        outputs += is_equal
        same_actions += [(a["name"], a["arguments"]) for a in gold_actions(official)] == [
            (step["name"], step["arguments"]) for step in record["steps"]
        ]
        if with_hashes:
            hashes += list(session.database_hashes()) == record["final_hash"]
    counted = {"outputs_equal": outputs, "same_gold_as_recorded": same_actions}
    return counted | ({"hashes_equal": hashes} if with_hashes else {})


if __name__ == "__main__":
    main()
