"""What a benchmark is made of and where its data is. Data is never shipped: a user brings it, digests check it.

An adapter names its files in one `Benchmark` (entry point group `evolve.benchmarks`) and reads them through
`BenchmarkData`, so that `evolve bench` and `evolve doctor` can say what is there and what brings the rest.
"""

from __future__ import annotations

import hashlib
import importlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from evolve.errors import ConfigError

DATA_VARIABLE = "EVOLVE_DATA"


@dataclass(frozen=True, slots=True)
class DataFile:
    """One file of a benchmark.

    Attributes:
        path: where it stands below the benchmark's folder.
        what: what is in it, in a few words.
        sha256: its pinned digest; None where only the source's commit pins it.
        is_needed: False where it serves a part only: held-out tasks, an exact ranking.
        others: digests of other versions that serve as well.
    """

    path: str
    what: str
    sha256: str | None = None
    is_needed: bool = True
    others: tuple[str, ...] = ()

    def is_right(self, sha256: str) -> bool:
        """Say whether a digest is one that this file may have."""
        return self.sha256 is None or sha256 in (self.sha256, *self.others)


@dataclass(frozen=True, slots=True)
class Benchmark:
    """Where a benchmark comes from and what it needs.

    Attributes:
        environments: the names under which it is played.
        forms: where its data may come in one form or another: patterns below its folder that make up each. One whole
            form is needed besides the needed `files`.
        source: address and commit or version of the origin.
        extra: the optional dependency that its adapter imports; None where it needs none.
        programs: programs that must be on PATH.
        fetch: the commands that bring the data, in order; `{folder}` stands for the benchmark's folder.
        places: gives the folders in which files are looked for, the main one first, where there is more to it than
            the option `data` (its argument; None: not set) or the benchmark's own folder.
        lacks: says what else is missing under an environment's options, and what mends it; empty where nothing is.
    """

    name: str
    title: str
    environments: tuple[str, ...]
    licence: str
    source: str
    files: tuple[DataFile, ...]
    fetch: tuple[str, ...]
    forms: tuple[tuple[str, ...], ...] = ()
    extra: str | None = None
    modules: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    places: Callable[[Path | None], tuple[Path, ...]] | None = None
    lacks: Callable[[Mapping[str, object]], str] | None = None
    notes: str = ""

    @property
    def home(self) -> Path:
        """The benchmark's own folder: where its data is brought to, and found where nobody says otherwise."""
        return data_home() / self.name


def data_home(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the folder of all benchmark data: EVOLVE_DATA, else `evolve` in the user's data folder (XDG)."""
    if chosen := environ.get(DATA_VARIABLE):
        return Path(chosen).expanduser()
    base = environ.get("XDG_DATA_HOME") or "~/.local/share"
    return Path(base).expanduser() / "evolve"


class BenchmarkData:
    """The data of one benchmark on this machine.

    Args:
        chosen: the environment's option `data`; None takes what `places` finds, else the benchmark's own folder.

    Raises:
        ConfigError: the option is no text.
    """

    def __init__(self, benchmark: Benchmark, chosen: object = None) -> None:
        if chosen is not None and not isinstance(chosen, str | Path):
            raise ConfigError(f"{benchmark.name}: option data must be a folder, got {chosen!r}")
        self.benchmark = benchmark
        named = Path(chosen).expanduser() if chosen else None
        self.folders = benchmark.places(named) if benchmark.places else (named or benchmark.home,)
        self.folder = self.folders[0]

    def has(self, path: str) -> bool:
        """Say whether a file is there; its content is not looked at."""
        return os.path.isfile(self.find(path))

    def find(self, path: str) -> Path:
        """Return where a file is; in the main folder where it is nowhere."""
        found = (folder / path for folder in self.folders)
        return next((place for place in found if os.path.isfile(place)), self.folder / path)

    def read(self, path: str) -> bytes:
        """Return the content of a file after checking its digest.

        Raises:
            ConfigError: it is not there, or it is not the file that was pinned.
        """
        file = next(file for file in self.benchmark.files if file.path == path)
        try:
            content = self.find(path).read_bytes()
        except OSError as error:
            raise ConfigError(self.missing(path)) from error
        if not file.is_right(hashlib.sha256(content).hexdigest()):
            raise ConfigError(
                f"{self.find(path)} is not the file that {self.benchmark.name} is pinned to (SHA-256 differs); "
                f"`evolve bench fetch {self.benchmark.name}` says how to bring it"
            )
        return content

    def missing(self, path: str) -> str:
        """Return the sentence for a file that is not there."""
        name = self.benchmark.name
        return f"{name} needs {path} in {self.folder}; `evolve bench fetch {name}` says how to bring it"


def need_module(module: str, *, extra: str) -> ModuleType:
    """Import a module of an optional dependency.

    Raises:
        ConfigError: it is not installed; the message names the extra that brings it.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ConfigError(f"{module} is not installed; pip install 'evolve-harness[{extra}]' brings it") from error
