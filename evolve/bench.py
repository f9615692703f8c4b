"""Benchmarks as a user meets them: what one is and needs, how its data comes here, whether an environment holds."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shlex
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from glob import iglob
from pathlib import Path
from typing import Literal

from pydantic import Field

from evolve.environments.conformance import Baseline, Check, broken, conformance, do_nothing, subject_of
from evolve.environments.data import Benchmark, BenchmarkData, DataFile
from evolve.environments.installed import environment_names, make_environment, offered
from evolve.errors import ConfigError, EvolveError, UserError
from evolve.records import Record

BENCHMARK_GROUP = "evolve.benchmarks"


State = Literal["present", "absent", "altered"]


class FileState(Record):
    """One data file of a benchmark on this machine."""

    path: str
    what: str
    state: State
    is_needed: bool


class BenchmarkState(Record):
    """A benchmark and what of it is here."""

    name: str
    title: str
    environments: tuple[str, ...]
    licence: str
    source: str
    folder: str = Field(description="where it is, or is looked for")
    home: str = Field(description="where the commands bring it")
    files: tuple[FileState, ...]
    missing_forms: tuple[str, ...] = Field(description="forms of which one would do; empty where one is whole")
    extra: str | None
    missing_modules: tuple[str, ...]
    missing_programs: tuple[str, ...]
    lacks: str = Field(description="what else is missing, and what mends it; empty where nothing is")
    fetch: tuple[str, ...]
    notes: str

    @property
    def is_ready(self) -> bool:
        """True where nothing that is needed lacks."""
        missing_files = any(file.is_needed and file.state != "present" for file in self.files)
        return not (missing_files or self.missing_forms or self.missing_modules or self.missing_programs or self.lacks)


class Verification(Record):
    """What `evolve bench verify` found on one environment."""

    environment: str
    checks: tuple[Check, ...] = ()
    nothing: Baseline | None = None
    missing: str = Field(default="", description="why nothing could be checked, and what mends it; empty where it was")

    @property
    def holds(self) -> bool | None:
        """True where every check holds; None where nothing could be checked, for an extra, data or an option."""
        return None if self.missing else all(check.holds for check in self.checks)


def benchmark_names() -> list[str]:
    """Return the names of all benchmarks that installed adapters play."""
    return sorted({point.name for point in offered(BENCHMARK_GROUP)})


def find_benchmark(name: str) -> Benchmark:
    """Return a benchmark by its name or by that of one of its environments.

    Raises:
        UserError: there is none of that name.
    """
    for point in offered(BENCHMARK_GROUP):
        benchmark: Benchmark = point.load()
        if name in (benchmark.name, *benchmark.environments):
            return benchmark
    known = ", ".join(benchmark_names()) or "none"
    if name in environment_names():
        raise UserError(f"{name} brings its own tasks, there is no data to fetch; benchmarks with data are: {known}")
    played = {one for point in offered(BENCHMARK_GROUP) for one in point.load().environments}
    others = ", ".join(sorted(set(environment_names()) - played)) or "none"
    raise UserError(
        f"there is no benchmark {name!r}; installed are: {known}; environments that bring their own tasks: {others}"
    )


def with_heldout(benchmark: Benchmark) -> set[str]:
    """Return the environments of a benchmark whose held-out data is on this machine."""
    return {name for name in benchmark.environments if _has_heldout(name)}


def _has_heldout(name: str) -> bool:
    try:
        return make_environment(name, {}).heldout_digest() is not None
    except (EvolveError, ImportError):
        return False


def state_of(benchmark: Benchmark, options: Mapping[str, object]) -> BenchmarkState:
    """Look at the data, modules and programs of a benchmark, and what else it needs; digests are checked."""
    chosen = options.get("data")
    data = BenchmarkData(benchmark, chosen)
    home = data.folder if chosen else benchmark.home
    files = tuple(
        FileState(path=f.path, what=f.what, state=_state(data.find(f.path), f), is_needed=f.is_needed)
        for f in benchmark.files
    )
    return BenchmarkState(
        name=benchmark.name,
        title=benchmark.title,
        environments=benchmark.environments,
        licence=benchmark.licence,
        source=benchmark.source,
        folder=str(data.folder),
        home=str(home),
        files=files,
        missing_forms=tuple(_missing_forms(benchmark, data.folder, files)),
        extra=benchmark.extra,
        missing_modules=tuple(name for name in benchmark.modules if not _has_module(name)),
        missing_programs=tuple(name for name in benchmark.programs if shutil.which(name) is None),
        lacks=benchmark.lacks(options) if benchmark.lacks else "",
        fetch=tuple(line.format(folder=shlex.quote(str(home))) for line in benchmark.fetch),
        notes=benchmark.notes,
    )


def take_files(benchmark: Benchmark, source: Path) -> list[str]:
    """Copy a benchmark's files out of a folder to where its adapter looks; return the paths that were copied.

    Each file is checked before it is moved into place, so that a cut-off copy leaves nothing half-made.

    Raises:
        UserError: the folder does not hold a needed file, or one that is not the pinned one.
    """
    if not os.path.isdir(source):
        raise UserError(f"{source} is no folder; --from names one that holds the files of {benchmark.name}")
    folder, given = benchmark.home, BenchmarkData(benchmark, source)
    states = {file: _state(given.find(file.path), file) for file in benchmark.files}
    for file, state in states.items():
        if state == "altered":
            raise UserError(
                f"{given.find(file.path)} is not the file that {benchmark.name} is pinned to (SHA-256 differs)"
            )
        if state == "absent" and file.is_needed and _state(folder / file.path, file) != "present":
            raise UserError(f"{source} holds no {file.path} ({file.what}), which {benchmark.name} needs")
    present = [file.path for file, state in states.items() if state == "present"]
    if not present:
        raise UserError(
            f"{source} holds no file that `evolve bench info {benchmark.name}` lists; "
            "a folder in another form is not copied: the option data names it where it is"
        )
    for path in present:
        _copy(given.find(path), folder / path)
    return present


def verify(name: str, options: Mapping[str, Mapping[str, object]], *, tasks: int) -> Iterator[Verification]:
    """Check an environment, or all of a benchmark, against what every environment has to keep.

    Args:
        options: the tables [environments.NAME] of the configuration.
        tasks: how many training tasks are looked at.

    Raises:
        UserError: there is neither an environment nor a benchmark of that name.
    """
    for environment in _environments(name):
        try:
            subject = subject_of(
                environment, partial(make_environment, environment, options.get(environment, {})), tasks=tasks
            )
        except ConfigError as error:
            yield Verification(environment=environment, missing=str(error))
            continue
        except EvolveError as error:
            yield Verification(environment=environment, checks=(broken(error),))
            continue
        checks = tuple(conformance(subject))
        nothing = do_nothing(subject) if all(check.holds for check in checks) else None
        yield Verification(environment=environment, checks=checks, nothing=nothing)


def _environments(name: str) -> Iterable[str]:
    return [name] if name in environment_names() else find_benchmark(name).environments


def _missing_forms(benchmark: Benchmark, folder: Path, files: Iterable[FileState]) -> list[str]:
    altered = {file.path for file in files if file.state == "altered"}
    for form in benchmark.forms:
        if altered.isdisjoint(form) and all(any(iglob(pattern, root_dir=folder)) for pattern in form):
            return []
    return [" with ".join(form) for form in benchmark.forms]


def _state(path: Path, file: DataFile) -> State:
    try:
        with path.open("rb") as content:
            is_right = file.is_right(hashlib.file_digest(content, "sha256").hexdigest())
    except OSError:
        return "absent"
    return "present" if is_right else "altered"


def _copy(source: Path, target: Path) -> None:
    if source.resolve() == target.resolve():
        return
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as part:
            os.replace(shutil.copyfile(source, Path(part) / target.name), target)
    except OSError as error:
        raise UserError(f"{target} cannot be written: {error.strerror}; EVOLVE_DATA names another place") from error


def _has_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False
