"""Divides a full list of goals into the held-out file and the loop's, so that a run never reads the held-out one.

    python -m evolve.environments.webshop.divide GOALS FOLDER

GOALS is JSON, gzipped or not: all goals of one set of products in upstream's order, as a list or under `goals`.
"""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

import orjson

from evolve.environments.webshop.benchmark import GOALS, HELDOUT
from evolve.environments.webshop.goals import HELDOUT_END, listed_goals, read_goals
from evolve.errors import ConfigError, UserError
from evolve.records import Json


def divide_file(path: Path, folder: Path) -> tuple[Path, Path]:
    """Write both files into a folder and return their paths, the held-out one first.

    Raises:
        ConfigError: the file holds no full list of goals.
    """
    content = path.read_bytes()
    read_goals(content, source=str(path))
    first, goals = listed_goals(content)
    if first or len(goals) <= HELDOUT_END:
        raise ConfigError(f"{path} holds goals {first} to {first + len(goals) - 1}, not a full list from 0 on")
    return (
        _write(folder / HELDOUT, 0, goals[:HELDOUT_END]),
        _write(folder / GOALS, HELDOUT_END, goals[HELDOUT_END:]),
    )


def _write(path: Path, first: int, goals: list[Json]) -> Path:
    path.write_bytes(gzip.compress(orjson.dumps({"first_goal_index": first, "goals": goals}), mtime=0))
    return path


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python -m evolve.environments.webshop.divide GOALS FOLDER")
    try:
        print(*divide_file(Path(sys.argv[1]), Path(sys.argv[2])), sep="\n")
    except (UserError, OSError) as error:
        sys.exit(str(error))
