"""The tasks as their files hold them: one a line, scripts inlined."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import groupby

from evolve.environments.data import BenchmarkData
from evolve.environments.os_interaction.rootfs import NAME
from evolve.errors import ConfigError
from evolve.records import Json, Split, Task

GUARD_SHARE = 4  # one task in so many


@dataclass(frozen=True, slots=True)
class Script:
    """A script of a task. Only a sandbox may run it."""

    language: str
    code: str

    def argv(self, *parameters: str) -> list[str]:
        """Return the command that runs it with parameters, which bash counts from 1."""
        if self.language == "python":
            return ["python3", "-c", self.code, *parameters]
        return ["bash", "-c", self.code, *(("--", *parameters) if parameters else ())]


@dataclass(frozen=True, slots=True)
class Problem:
    """A task with what stays hidden of it.

    Attributes:
        start: what runs in the background before the agent comes.
        match: an answer, or {"answer": ...} or {"regex": ...} with an optional "strip"; None where `check` judges.
        check: a chain of scripts; None in it stands for `example`.
        example: a script that solves the task or prints the right answer.
    """

    task_id: str
    description: str
    family: str
    init: tuple[Script, ...]
    start: Script | None
    match: str | Json | None
    check: tuple[Script | None, ...]
    example: Script | None

    def task(self, split: Split) -> Task:
        """Return what others may know of it."""
        return Task(
            task_id=self.task_id, environment=NAME, split=split, family=self.family, text=self.description.strip()
        )


def read_problems(files: BenchmarkData, path: str) -> list[Problem]:
    """Read the tasks of one file.

    Raises:
        ConfigError: the file is not there, not the one that is pinned, or holds something else than tasks.
    """
    content = files.read(path)
    try:
        return [_problem(json.loads(line)) for line in content.splitlines()]
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigError(f"{files.folder / path} does not hold tasks of {NAME}: {error!r}") from error


def divided(problems: Sequence[Problem]) -> Mapping[Split, list[Problem]]:
    """Divide tasks for the loop: of each family the quarter whose ids hash lowest guards, the rest trains."""
    guards = set()
    by_family = sorted(problems, key=lambda problem: (problem.family, sha256(problem.task_id.encode()).hexdigest()))
    for _, members in groupby(by_family, key=lambda problem: problem.family):
        ids = [problem.task_id for problem in members]
        guards.update(ids[: len(ids) // GUARD_SHARE])
    return {
        Split.TRAIN: [problem for problem in problems if problem.task_id not in guards],
        Split.GUARD: [problem for problem in problems if problem.task_id in guards],
    }


def _problem(row: Json) -> Problem:
    check = tuple(_script(script) for script in row["check"] or ())
    example = _script(row["example"])
    if row["match"] is None and (not check or (None in check and example is None)):
        raise ValueError(f"{row['id']} cannot be judged")
    init = tuple(script for script in map(_script, row["init"]) if script is not None)
    return Problem(
        task_id=row["id"],
        description=row["description"],
        family=_family(row),
        init=init,
        start=_script(row["start"]),
        match=row["match"],
        check=check,
        example=example,
    )


def _script(row: Json | None) -> Script | None:
    if row is None:
        return None
    if row["language"] not in ("bash", "python"):
        raise ValueError(f"a script in {row['language']}; bash and python are run")
    return Script(row["language"], row["code"])


def _family(row: Json) -> str:
    """Name a task by how it is judged: the benchmark's files share no other kind."""
    if row["match"] is not None:
        return "match"
    last = row["check"][-1] or {}
    name = str(last.get("file", "")).rpartition("/")[2]
    return name.removesuffix(".py") if name.endswith(".py") else "check"
