"""Finds the files of a domain and reads tasks by side of the official split. Never mixes the sides.

Two layouts are read: one folder that holds `airline/`, `retail/`, `telecom/` and `user_simulator/`, and upstream's
data folder, where the same stands below `tau2/domains/` and `tau2/`.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import orjson

from evolve.environments.data import BenchmarkData, data_home
from evolve.environments.tau2.benchmark import BENCHMARK, PARTS, TRAINING_DIGESTS, WHOLE
from evolve.errors import ConfigError
from evolve.records import Json, Split, digest_of

DATA_VARIABLE = "TAU2_DATA_DIR"
GUARD_SHARE = 4

Side = Literal["train", "test"]


def find_root(chosen: Path | None, environ: Mapping[str, str] = os.environ) -> Path:
    """Return the folder that holds the three domains.

    Looked for in this order: the option, TAU2_DATA_DIR, `tau2` below EVOLVE_DATA, the installed package.
    """
    if chosen is not None:
        return _domains_in(chosen.expanduser())
    if named := environ.get(DATA_VARIABLE):
        return _domains_in(Path(named).expanduser())
    own = data_home(environ) / BENCHMARK.name
    packaged = packaged_data()
    return _domains_in(packaged if packaged is not None and not own.is_dir() else own)


def packaged_data() -> Path | None:
    """Return the data folder inside the installed package; None where it has none, as a checkout."""
    spec = importlib.util.find_spec("tau2")
    places = spec.submodule_search_locations if spec is not None else None
    folder = Path(next(iter(places))) / "data" if places else None
    return folder if folder is not None and folder.is_dir() else None


def _domains_in(folder: Path) -> Path:
    return next((f for f in (folder / "tau2" / "domains", folder / "domains") if f.is_dir()), folder)


class Source:
    """The files of one domain.

    Args:
        domain: airline, retail or telecom.
        root: as `find_root` gives it.
        texts: the version that is wanted; None takes v0.2.0 where both are there.
    """

    def __init__(self, domain: str, root: Path, texts: str | None = None) -> None:
        self.domain = domain
        self._data = BenchmarkData(BENCHMARK, root)
        self._wanted = texts

    def read(self, name: str) -> bytes:
        """Return a file of the domain.

        Raises:
            ConfigError: it is not there or is not the pinned one.
        """
        return self._data.read(f"{self.domain}/{name}")

    def read_guidelines(self, path: str) -> str:
        """Return the guidelines of simulated users, which upstream keeps beside the domains.

        Raises:
            ConfigError: they are not there or are not the pinned ones.
        """
        beside = BenchmarkData(BENCHMARK, self._data.folder.parent)
        return (self._data if self._data.has(path) or not beside.has(path) else beside).read(path).decode()

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
        ids = _json(self.read("split_tasks.json"), f"{self.domain}/split_tasks.json")[side]
        path = self._path(side)
        found = {task["id"]: task for task in _json(self._data.read(path), path)}
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


def _json(content: bytes, path: str) -> Any:
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise ConfigError(f"{path} is no JSON: {error}") from error
