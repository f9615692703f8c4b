"""Reset, step and score times and the memory of every environment that can be used here.

    python benchmarks/environments.py --data DIR        # DIR holds a folder for each benchmark, e.g. DIR/dbbench
    python benchmarks/environments.py dbbench webshop --tasks 20

Each environment runs in a process of its own: open a task, make a few calls as `calls_of` has them, end the episode
where a call ends it, score, close; then the medians, the 95th percentile of a step, and the peak of resident memory,
in one JSON line each. Beside them stand the figures of upstream's own code, measured once on two cores of the same kind
of machine with other work going on; `--engine` measures ALFWorld's bare engine on the same games and actions.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from evolve.bench import find_benchmark
from evolve.environments.conformance import nonsense
from evolve.environments.installed import environment_names, make_environment
from evolve.errors import UserError
from evolve.protocols import Environment, Session
from evolve.records import Call, Json, Observation, Split, Task

UPSTREAM: dict[str, Json] = {
    "tau2_airline": {"open_ms": [160, 300], "score_ms": [700, 800]},
    "tau2_retail": {"open_ms": 54, "score_ms": [250, 540]},
    "tau2_telecom": {"open_ms": 4, "step_ms": 0.03, "score_ms": 8},
    "alfworld": {"open_ms": 2460, "step_ms": 70, "step_p95_ms": 170, "peak_mb": 463},
    "webshop": {"open_ms": 3.5, "step_ms": 24, "step_p95_ms": 60, "peak_mb": 213},
    "os_interaction": {"open_ms": [35, 67]},
    "dbbench": {"open_ms": 0.8, "step_ms": 0.4},
}


def calls_of(session: Session, task: Task) -> Generator[Call, Observation]:
    """Yield what is asked of a session; it is sent each observation.

    Where actions are published, admissible ones; a search with the words of the goal and a purchase of what comes
    first; SQL and shell commands that read; elsewhere arguments that fit the schemas. The last call ends the episode
    where one can.
    """
    tools = {tool.name for tool in session.tools}
    random = Random(task.task_id)
    if "take_action" in tools:
        admissible = session.opening.admissible
        for _ in range(8):
            seen = yield Call(tool="take_action", arguments={"action": random.choice(admissible or ("look",))})
            admissible = seen.admissible
    elif "search_action" in tools:
        goal = session.opening.user.split("[SEP]")[2].strip()
        seen = yield Call(tool="search_action", arguments={"keywords": goal})
        product = next(
            (value for value in seen.admissible or () if re.fullmatch(r"[Bb]0\w{8}", value)), "back to search"
        )
        yield Call(tool="click_action", arguments={"value": product})
        yield Call(tool="click_action", arguments={"value": "buy now"})
    elif "execute_sql" in tools:
        seen = yield Call(tool="execute_sql", arguments={"query": "SHOW TABLES"})
        name = re.search(r"'([^']+)'", seen.text)
        yield Call(tool="execute_sql", arguments={"query": f"SELECT * FROM `{name[1] if name else 'none'}`"})
        yield Call(tool="commit_final_answer", arguments={"answers": ["none"]})
    elif "bash_action" in tools:
        for script in ("ls -l /etc", "wc -l < /etc/passwd", "find / -xdev -name '*.conf' | head -n 20"):
            yield Call(tool="bash_action", arguments={"script": script})
        yield Call(tool="answer_action", arguments={"answer": "none"})
    else:
        calls = nonsense(session.tools, task.task_id)
        while calls:
            yield calls.pop(0)
        if "done" in tools:
            yield Call(tool="done", arguments={})


@dataclass
class Times:
    """How long opening, steps and scoring took, in seconds."""

    opened: list[float] = field(default_factory=list)
    stepped: list[float] = field(default_factory=list)
    scored: list[float] = field(default_factory=list)
    ended: int = 0

    def medians(self) -> Json:
        return {
            "open_ms": _ms(statistics.median(self.opened)),
            "step_ms": _ms(statistics.median(self.stepped)),
            "step_p95_ms": _ms(statistics.quantiles(self.stepped, n=20)[-1]),
            **({"score_ms": _ms(statistics.median(self.scored))} if self.scored else {}),
        }


def play(environment: Environment, task: Task, times: Times) -> None:
    """Play one episode and add its times."""
    with timed(times.opened):
        session = environment.open(task, 0)
    calls = calls_of(session, task)
    with suppress(StopIteration):
        call = next(calls)
        while True:
            with timed(times.stepped):
                seen = session.step(call)
            times.ended += seen.done
            if seen.done:
                break
            call = calls.send(seen)
    with timed(times.scored):
        session.score()
    session.close()


def measure(name: str, options: Json, count: int) -> Json:
    """Return the figures of one environment, in this process."""
    started = time.perf_counter()
    environment = make_environment(name, options)
    tasks = list(environment.tasks(Split.TRAIN))
    made = time.perf_counter() - started
    stride = max(1, len(tasks) // (count + 1))
    warming, warm = Times(), Times()
    played = tasks[::stride][: count + 1]
    if len(played) < 2:
        raise UserError("fewer than two training tasks: nothing to take a median of")
    for index, task in enumerate(played):
        play(environment, task, warm if index else warming)
    return {
        "environment": name,
        "version": environment.card.version,
        "tasks": len(warm.opened),
        "ended": warm.ended,
        "make_ms": _ms(made),
        "first_ms": _ms(sum(warming.opened + warming.stepped + warming.scored)),
        **warm.medians(),
        "peak_mb": own_peak_mb(),
        "peak_child_mb": child_peak_mb(),
        "upstream": UPSTREAM.get(name),
    }


@contextmanager
def timed(seconds: list[float]) -> Iterator[None]:
    """Add how long the block took."""
    begin = time.perf_counter()
    yield
    seconds.append(time.perf_counter() - begin)


def own_peak_mb() -> int:
    """Return the peak of this process's resident memory."""
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def child_peak_mb() -> int:
    """Return the highest peak among the children of this process, those that ended and those that wait for more."""
    peaks = [resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss]
    for status in Path("/proc").glob("[0-9]*/status"):
        with suppress(OSError):
            fields = dict(line.split(":", 1) for line in status.read_text().splitlines())
            if int(fields["PPid"]) == os.getpid() and "VmHWM" in fields:  # one that ended has none
                peaks.append(int(fields["VmHWM"].split()[0]))
    return round(max(peaks) / 1024)


def measure_engine(data: Path, count: int) -> Json:
    """Return the figures of ALFWorld's bare engine, in this process, on the games and actions of `measure`."""
    import textworld
    from alfworld.agents.environment.alfred_tw_env import AlfredDemangler

    from evolve.environments.alfworld.games import read_games
    from evolve.environments.data import BenchmarkData

    environment = make_environment("alfworld", options_of("alfworld", data))
    tasks = list(environment.tasks(Split.TRAIN))
    ids = [task.task_id for task in tasks[:: max(1, len(tasks) // (count + 1))][1 : count + 1]]
    folder = BenchmarkData(find_benchmark("alfworld"), data / "alfworld")
    wanted = {game.game_id: game for game in read_games(folder, "train") if game.game_id in ids}
    infos = textworld.EnvInfos(won=True, admissible_commands=True)
    times = Times()
    engine = None
    with tempfile.NamedTemporaryFile(suffix=".tw-pddl") as file:
        for name in ids:
            Path(file.name).write_bytes(wanted[name].content())
            random = Random(name)  # chooses what `calls_of` chooses
            with timed(times.opened):
                if engine is None:
                    engine = textworld.start(file.name, infos, wrappers=[AlfredDemangler()])
                else:
                    engine.load(file.name)
                state = engine.reset()
            for _ in range(8):
                action = random.choice(state.admissible_commands)
                with timed(times.stepped):
                    state, _, is_done = engine.step(action)
                if is_done:
                    break
    return {"environment": "alfworld, bare engine", "tasks": len(ids), **times.medians(), "peak_mb": own_peak_mb()}


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
    parser.add_argument("--engine", action="store_true", help="ALFWorld's bare engine beside it; asks for --data")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.tasks < 1 or (chosen.engine and not chosen.data):
        parser.error("--tasks is at least 1, and --engine asks for --data")
    if chosen.engine:
        print(json.dumps(measure_engine(chosen.data, chosen.tasks)))
        return
    if chosen.here:
        (name,) = chosen.names
        try:
            print(json.dumps(measure(name, options_of(name, chosen.data), chosen.tasks)))
        except UserError as error:
            print(f"{name}: left out: {error}", file=sys.stderr)
        return
    for name in chosen.names or environment_names():
        command = [sys.executable, __file__, name, "--here", "--tasks", str(chosen.tasks)]
        command += ["--data", str(chosen.data)] if chosen.data else []
        subprocess.run(command, check=False)


if __name__ == "__main__":
    main()
