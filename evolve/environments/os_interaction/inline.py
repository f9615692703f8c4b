"""Writes AgentBench's OS tasks one a line with their scripts inlined, so that a split is one file and one digest.

    python -m evolve.environments.os_interaction.inline DATA FOLDER

DATA is `data/os_interaction` of a checkout. Nothing is run, and the held-out set is written without being shown.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from evolve.environments.data import BenchmarkData
from evolve.environments.os_interaction.benchmark import BENCHMARK, DEV, STD, TRAIN
from evolve.errors import ConfigError, UserError
from evolve.records import Json


@dataclass(frozen=True, slots=True)
class Source:
    """Which files of a checkout one of ours is made of, and where their scripts are."""

    prefix: str
    parts: tuple[tuple[str, str], ...]


SOURCES = {
    DEV: Source("dev", (("data/dev.json", "scripts/dev"),)),
    TRAIN: Source("train", (("train_0317/training.json", "scripts/7"),)),
    STD: Source("std", tuple((f"data/{part}/*.json", f"scripts/{part}") for part in range(1, 8))),
}


def inline(data: Path, folder: Path) -> list[Path]:
    """Write the files and return their paths.

    Raises:
        ConfigError: a file or script is missing, is no task file, or what was written is not what is pinned.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name, source in SOURCES.items():
        try:
            text = "".join(json.dumps(row) + "\n" for row in _rows(data, source))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ConfigError(f"{data} is not data/os_interaction of AgentBench 578c5e9: {error!r}") from error
        (folder / name).write_text(text, "utf-8")
        BenchmarkData(BENCHMARK, folder).read(name)
    return [folder / name for name in SOURCES]


def _rows(data: Path, source: Source) -> Iterator[Json]:
    number = 0
    for pattern, scripts in source.parts:
        paths = sorted(data.glob(pattern))
        if not paths:
            raise FileNotFoundError(data / pattern)
        for path in paths:
            tasks = json.loads(path.read_text("utf-8"))
            for task in tasks if isinstance(tasks, list) else [tasks]:
                yield _row(f"{source.prefix}-{number:04d}", str(path.relative_to(data)), task, data / scripts)
                number += 1


def _row(task_id: str, origin: str, task: Json, scripts: Path) -> Json:
    create, evaluation = task.get("create"), task["evaluation"]
    create = create if isinstance(create, dict) else {}  # one task has a list of check scripts there
    return {
        "id": task_id,
        "source": origin,
        "description": task["description"],
        "labels": task.get("labels"),
        "image": create.get("local", "default"),
        "init": [_script(script, scripts) for script in _listed(create.get("init"))],
        "start": _script(task.get("start"), scripts),
        "match": evaluation.get("match"),
        "check": [_script(script, scripts) for script in _listed(evaluation.get("check"))] or None,
        "example": _script(evaluation.get("example"), scripts),
    }


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _script(script: object, scripts: Path) -> Json | None:
    if script is None:
        return None
    if isinstance(script, str):
        return {"language": "bash", "code": script}
    if not isinstance(script, dict):
        raise TypeError(f"{script!r} is no script")
    language = script.get("language", "bash")
    if "file" in script:
        code = (scripts / script["file"]).read_text("utf-8")
        return {"language": language, "code": code, "file": script["file"]}
    return {"language": language, "code": script["code"]}


def main(arguments: list[str]) -> str | None:
    """Run the command line; what is returned is for `sys.exit`."""
    if len(arguments) != 2:
        return "usage: python -m evolve.environments.os_interaction.inline DATA FOLDER"
    try:
        for path in inline(Path(arguments[0]), Path(arguments[1])):
            print(path)
    except UserError as error:
        return str(error)
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
