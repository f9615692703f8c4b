"""The entries of DBBench's files, and how the open ones are divided into training and guard tasks."""

from __future__ import annotations

import ast
import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from evolve.environments.data import BenchmarkData
from evolve.environments.dbbench.benchmark import DEV, OPEN, STANDARD
from evolve.errors import ConfigError
from evolve.records import Json, Split, Task

NAME = "dbbench"
CHANGES = ("INSERT", "DELETE", "UPDATE")
GUARD_SHARE = 0.25
STANDARD_SIZE = 300


@dataclass(frozen=True, slots=True)
class Table:
    """A table as a task begins with it; all columns are texts."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """One task with its gold.

    Attributes:
        family: the benchmark's own kind: INSERT, UPDATE, counting, ranking, ...
        labels: the expected values of a question; the gold SQL of a change.
        table_hash: what the table must hash to after a change; None for a question.
    """

    task_id: str
    family: str
    text: str
    table: Table
    labels: tuple[str, ...]
    table_hash: str | None

    def task(self, split: Split) -> Task:
        """Return what the loop may know of this entry."""
        return Task(task_id=self.task_id, environment=NAME, split=split, family=self.family, text=self.text)


def open_entries(files: BenchmarkData) -> list[Entry]:
    """Read the entries that a run may use: dev and the open half of standard.

    Raises:
        ConfigError: a file is not there, or is another one.
    """
    dev = [_entry(f"dev-{index}", raw) for index, raw in enumerate(_lines(files, DEV))]
    return dev + [_entry(f"standard-{raw['index']}", raw) for raw in _lines(files, OPEN)]


def heldout_entries(files: BenchmarkData) -> list[Entry]:
    """Read the standard entries that are not in the open half.

    Raises:
        ConfigError: standard.jsonl is not there, or does not hold the 300 standard tasks.
    """
    opened = {raw["index"] for raw in _lines(files, OPEN)}
    path = files.folder / STANDARD
    try:
        lines = _lines(files, STANDARD)
        entries = [_entry(f"standard-{index}", raw) for index, raw in enumerate(lines) if index not in opened]
    except (ValueError, LookupError, TypeError, SyntaxError) as error:
        raise ConfigError(f"{path} is not DBBench's file of standard tasks: {error!r}") from error
    if len(lines) != STANDARD_SIZE:
        raise ConfigError(f"{path} has {len(lines)} tasks; DBBench's file of standard tasks has {STANDARD_SIZE}")
    return entries


def divided(entries: Sequence[Entry]) -> dict[Split, list[Entry]]:
    """Divide entries into training and guard tasks: a quarter of each family, by hash of the task id, is guard."""
    by_family: dict[str, list[Entry]] = defaultdict(list)
    for entry in sorted(entries, key=_drawn):
        by_family[entry.family].append(entry)
    split: dict[Split, list[Entry]] = {Split.TRAIN: [], Split.GUARD: []}
    for family in by_family.values():
        count = round(GUARD_SHARE * len(family))
        split[Split.GUARD] += family[:count]
        split[Split.TRAIN] += family[count:]
    return {name: mixed(members) for name, members in split.items()}


def mixed(entries: Iterable[Entry]) -> list[Entry]:
    """Order entries so that every prefix has each family in about its share of the whole."""
    by_family: dict[str, list[Entry]] = defaultdict(list)
    for entry in sorted(entries, key=_drawn):
        by_family[entry.family].append(entry)
    placed = [
        ((rank + 0.5) / len(family), name, entry.task_id, entry)
        for name, family in by_family.items()
        for rank, entry in enumerate(family)
    ]
    return [entry for *_, entry in sorted(placed, key=lambda place: place[:3])]


def _drawn(entry: Entry) -> str:
    return hashlib.sha256(entry.task_id.encode()).hexdigest()


def _lines(files: BenchmarkData, path: str) -> list[Json]:
    return [json.loads(line) for line in files.read(path).decode().split("\n") if line.strip()]


def _entry(task_id: str, raw: Json) -> Entry:
    family = raw["type"][0]
    columns = raw["table"]["table_info"]["columns"]
    rows = raw["table"]["table_info"]["rows"]
    return Entry(
        task_id=task_id,
        family=family,
        text=f"{raw['add_description']}\n\n{raw['description']}",
        table=Table(
            name=raw["table"]["table_name"],
            columns=tuple(column["name"] for column in columns),
            rows=tuple(tuple(str(value) for value in row) for row in rows),
        ),
        labels=tuple(raw["label"]),
        table_hash=ast.literal_eval(raw["answer_md5"])[0][0] if family in CHANGES else None,
    )
