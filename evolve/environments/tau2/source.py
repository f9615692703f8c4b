"""Reads the files of a domain, and its tasks by side of the official split. Never mixes the sides."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeVar

import orjson

from evolve.environments.data import BenchmarkData
from evolve.environments.tau2.benchmark import BENCHMARK, PARTS, TRAINING_DIGESTS, WHOLE
from evolve.errors import ConfigError
from evolve.records import Json, Split, digest_of

GUARD_SHARE = 4

Side = Literal["train", "test"]
T = TypeVar("T")


class Source:
    """The files of one domain.

    Args:
        domain: airline, retail or telecom.
        chosen: the option `data`; None: see `places`.
        texts: the version that is wanted; None takes v0.2.0 where both are there.
    """

    def __init__(self, domain: str, chosen: Path | None, texts: str | None = None) -> None:
        self.domain = domain
        self._data = BenchmarkData(BENCHMARK, chosen)
        self._wanted = texts

    def read(self, name: str) -> bytes:
        """Return a file of the domain.

        Raises:
            ConfigError: it is not there or is not the pinned one.
        """
        return self._data.read(f"{self.domain}/{name}")

    def read_guidelines(self, path: str) -> str:
        """Return the guidelines of simulated users, of one kind.

        Raises:
            ConfigError: they are not there or are not the pinned ones.
        """
        return self._data.read(path).decode()

    @cached_property
    def texts(self) -> str:
        """The version of the task texts, told by the training tasks themselves.

        Raises:
            ConfigError: the tasks are of no known version, or not of the one that is wanted.
        """
        version = TRAINING_DIGESTS[self.domain].get(self.training_digest)
        versions = " or ".join(PARTS[self.domain])
        if version is None:
            raise ConfigError(f"{self._path('train')}: these training tasks are not those of version {versions}")
        if self.domain != "telecom" and self._wanted not in (None, version):
            raise ConfigError(
                f"{self._path('train')} holds texts {version}, and option texts asks for {self._wanted}; "
                f"name another folder in option data, or leave texts out"
            )
        return version

    @cached_property
    def training(self) -> dict[str, Json]:
        """The tasks of the official training side, by id.

        Raises:
            ConfigError: the file is not there, does not read or lacks a task.
        """
        return self._side("train")

    @cached_property
    def training_digest(self) -> str:
        """SHA-256 of the training tasks, sorted by official id."""
        return digest_of([task for _, task in sorted(self.training.items())])

    def of_split(self, split: Split) -> dict[str, Json]:
        """Return the tasks of a split by official id, in the order of the official split.

        Raises:
            ConfigError: the file is not there or does not read.
        """
        if split is Split.HELDOUT:
            return self._side("test")
        guard = guard_ids(self.training)
        return {name: task for name, task in self.training.items() if (name in guard) == (split is Split.GUARD)}

    def has_heldout(self) -> bool:
        """Say whether the held-out tasks are here."""
        return self._data.has(self._path("test"))

    def _side(self, side: Side) -> dict[str, Json]:
        """Return the tasks of one side of the official split, in its order; the other side is not kept.

        Raises:
            ConfigError: the file is not there, does not read or lacks a task.
        """
        listing, path = f"{self.domain}/split_tasks.json", self._path(side)
        ids = _json(self._data.read(listing), listing, lambda splits: list(splits[side]))
        found = _json(self._data.read(path), path, lambda tasks: {task["id"]: task for task in tasks})
        missing = [name for name in ids if name not in found]
        if missing:
            raise ConfigError(f"{path} lacks task {missing[0]} of the official {side} split")
        return {name: found[name] for name in ids}

    def _path(self, side: Side) -> str:
        """Return the file of a side: the whole set, or that side's own in the version wanted."""
        if self._data.has(f"{self.domain}/{WHOLE}"):
            return f"{self.domain}/{WHOLE}"
        names = PARTS[self.domain]
        wanted = [name for version, name in names.items() if version == self._wanted] or list(names.values())
        paths = [f"{self.domain}/{name}" for name in wanted]
        training = [path for path in paths if self._data.has(path.format(side="train"))]
        return (training or paths)[0].format(side=side)


def family_of(domain: str, name: str) -> str:
    """Return the kind of a task: telecom writes it in brackets before the rest of the id; others have one kind."""
    return name[1:].partition("]")[0] if name.startswith("[") else domain


def guard_ids(training: Mapping[str, Json]) -> set[str]:
    """Return the training ids that are kept from the proposer: of each family, the quarter with the lowest digests."""
    families: dict[str, list[str]] = {}
    for name in sorted(training, key=lambda name: hashlib.sha256(name.encode()).hexdigest()):
        families.setdefault(family_of("", name), []).append(name)
    return {name for names in families.values() for name in names[: round(len(names) / GUARD_SHARE)]}


def _json(content: bytes, path: str, taken: Callable[[Any], T]) -> T:
    """Return what is taken out of a file. Splits and tasks are not pinned, so they may hold anything."""
    try:
        return taken(orjson.loads(content))
    except (ValueError, LookupError, TypeError) as error:
        raise ConfigError(f"{path} is not the file of {BENCHMARK.source}: {error!r}") from error
