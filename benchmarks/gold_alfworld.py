"""Plays the walkthroughs of an official split through the adapter: `python benchmarks/gold_alfworld.py --data DIR`.

Each game is named on stderr as it ends. One JSON line says how many reached score 1, what doing nothing scores and what
opening and stepping took. Times are by the clock and grow on a busy machine; the engines' processor time hardly does.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice

import orjson

from evolve.environments.alfworld import Alfworld, create
from evolve.environments.alfworld.benchmark import BENCHMARK, LOOP_SPLITS
from evolve.environments.alfworld.games import Game, read_games
from evolve.environments.data import BenchmarkData
from evolve.errors import EnvironmentBroken
from evolve.records import Call, Split, Task


@dataclass
class Played:
    """One walkthrough: what the opening scored, what its end scored, its times in seconds, how the engine broke."""

    task_id: str
    nothing: float = 0.0
    score: float = 0.0
    open_s: float = 0.0
    step_s: list[float] = field(default_factory=list)
    broken: str = ""


def play(alfworld: Alfworld, task: Task, walkthrough: Iterable[str]) -> Played:
    begun = time.perf_counter()
    with closing(alfworld.open(task, 0)) as session:
        played = Played(task.task_id, session.score().value, 0.0, time.perf_counter() - begun)
        for action in walkthrough:
            begun = time.perf_counter()
            session.step(Call(tool="take_action", arguments={"action": action}))
            played.step_s.append(time.perf_counter() - begun)
        played.score = session.score().value
    return played


def play_all(options: dict[str, str], *, first: int, at_once: int) -> list[Played]:
    """Play the first games of a split. The environment is dropped at the end, and its engines end with it."""
    alfworld = create({**options, "train": 10_000, "guard": 10_000})
    tasks = {task.task_id: task for split in (Split.TRAIN, Split.GUARD) for task in alfworld.tasks(split)}
    games = islice(read_games(BenchmarkData(BENCHMARK, options.get("data")), options["games"]), first)

    def one(game: Game) -> Played:
        try:
            return play(alfworld, tasks[game.game_id], orjson.loads(game.content())["walkthrough"])
        except EnvironmentBroken as error:  # minutes of other games are not lost with it
            return Played(game.game_id, broken=str(error))

    with ThreadPoolExecutor(at_once) as threads:
        played = []
        for game in threads.map(one, games):
            played.append(game)
            print(f"{len(played)} {game.task_id}: {game.broken or game.score}", file=sys.stderr)
        return played


def engines() -> dict[str, float]:
    """What the engine processes took, all of which have ended: processor time, and the memory of the largest."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {"cpu_s": round(used.ru_utime + used.ru_stime, 1), "largest_mib": round(used.ru_maxrss / 1024)}


def summary(games: str, played: list[Played], *, at_once: int, wall_s: float) -> dict[str, object]:
    opens = [one.open_s for one in played if not one.broken] or [0.0]
    steps = [s for one in played for s in one.step_s] or [0.0]
    return {
        "games": games,
        "played": len(played),
        "score_1": sum(one.score == 1.0 for one in played),
        "failed": [one.task_id for one in played if one.score < 1.0 and not one.broken],
        "broken": {one.task_id: one.broken for one in played if one.broken},
        "do_nothing": sum(one.nothing for one in played) / len(played),
        "steps": len(steps),
        "open_s": {"median": round(statistics.median(opens), 3), "max": round(max(opens), 3)},
        "step_s": {"median": round(statistics.median(steps), 4), "max": round(max(steps), 3)},
        "engines": engines(),
        "at_once": at_once,
        "wall_s": round(wall_s, 1),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="folder of the games; default: where `evolve bench info alfworld` looks")
    parser.add_argument("--games", choices=LOOP_SPLITS, default="valid_seen")
    parser.add_argument("--first", type=int, default=10_000, help="play only the first so many")
    parser.add_argument("--at-once", type=int, default=2, help="sessions at the same time")
    given = parser.parse_args()
    options = {"games": given.games, **({"data": given.data} if given.data else {})}
    begun = time.perf_counter()
    played = play_all(options, first=given.first, at_once=given.at_once)
    wall_s = time.perf_counter() - begun
    found = summary(given.games, played, at_once=given.at_once, wall_s=wall_s)
    print(json.dumps(found))
    return 0 if found["score_1"] == len(played) else 1


if __name__ == "__main__":
    sys.exit(main())
