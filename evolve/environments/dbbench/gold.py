"""The calls that solve a task: its own gold SQL for a change, its label for a question."""

from __future__ import annotations

from evolve.environments.dbbench.entries import Entry
from evolve.environments.dbbench.session import COMMIT, EXECUTE
from evolve.records import Call


def gold_calls(entry: Entry) -> list[Call]:
    """Return the gold calls of an entry. The SQL that comes with questions is wrong more often than not: unused."""
    answer = list(entry.labels) if entry.table_hash is None else ["done"]
    commit = Call(tool=COMMIT.name, arguments={"answers": answer})
    if entry.table_hash is None:
        return [commit]
    return [Call(tool=EXECUTE.name, arguments={"query": entry.labels[0]}), commit]
