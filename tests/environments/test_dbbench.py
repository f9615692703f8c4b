"""DBBench on the embedded engine: gold solves it, doing nothing does not, and its own words come out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from evolve.environments.dbbench import create
from evolve.environments.dbbench.entries import Entry, divided, open_entries
from evolve.environments.dbbench.environment import DbBench
from evolve.environments.dbbench.gold import gold_calls
from evolve.environments.dbbench.session import COMMIT, EXECUTE, DbSession
from evolve.records import Call, ErrorKind, Observation, Split, Task

pytest.importorskip("sqlglot", reason="the extra dbbench is not installed")


@pytest.fixture(scope="session")
def bench(benchmark_data: Callable[[str], Path]) -> DbBench:
    return create({"data": str(benchmark_data("dbbench"))})


@pytest.fixture(scope="session")
def entries(bench: DbBench) -> dict[str, Entry]:
    return {entry.task_id: entry for entry in open_entries(bench._files)}


def tasks_of(bench: DbBench) -> list[Task]:
    return [*bench.tasks(Split.TRAIN), *bench.tasks(Split.GUARD)]


def test_gold_solves_every_open_task(bench: DbBench, entries: dict[str, Entry]) -> None:
    """The benchmark's own SQL and labels reach 1.0 on all 212 open tasks of the embedded engine."""
    missed = []
    for task in tasks_of(bench):
        session = bench.open(task, 0)
        for call in gold_calls(entries[task.task_id]):
            session.step(call)
        if not session.score().success:
            missed.append(task.task_id)
        session.close()
    assert (len(entries), missed) == (212, [])
