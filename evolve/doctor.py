"""Looks at what a run needs: what is there, what is missing, and the command that mends it. Changes nothing."""

from __future__ import annotations

import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Literal

from pydantic import Field

from evolve.assembly import environment_names, make_environment, open_ledger
from evolve.bench import benchmark_names, find_benchmark
from evolve.config import Config
from evolve.errors import ConfigError, EvolveError, HarnessError, WorkspaceBusy
from evolve.harness.artifact import read_harness
from evolve.harness.worker import TIERS, WorkerPool
from evolve.lock import WorkspaceLock
from evolve.models.create import create_model, probe_protocol
from evolve.models.settings import ModelSettings
from evolve.proposers.agents import read_rows, shipped_rows
from evolve.proposers.sandbox import MEND, OUTSIDE, find_sandbox
from evolve.records import Record
from evolve.repository import harness_folder, open_repository
from evolve.store import RunStatus
from evolve.workspace import Workspace

DISTRIBUTION = "evolve-harness"
OLDEST_PYTHON = (3, 11)
OLDEST_GIT = (2, 28)
SAFE_SQLITE = (3, 51, 3)
PROBE_TIMEOUT_S = 60.0


class Finding(Record):
    """One thing that was looked at."""

    name: str
    status: Literal["ok", "warn", "missing"]
    detail: str
    mend: str = Field(default="", description="the command, or the act, that mends it")
    blocks: bool = Field(default=False, description="True where no run is possible before it is mended")


def require_ready(config: Config, environ: Mapping[str, str]) -> None:
    """Refuse to begin with an environment or without a key that will be missed later.

    Raises:
        ConfigError: the environment is not installed, or a variable that an endpoint's key should be in is not set.
    """
    make_environment(config.environment, config.environments.get(config.environment, {}))
    asked = {"model": config.model}
    if config.proposer.kind == "openai" and config.proposer.model is not None:
        asked["proposer.model"] = config.proposer.model
    for place, settings in asked.items():
        if name := missing_key(settings, environ):
            raise ConfigError(
                f"no key for {settings.base_url}: set the variable {name} (in the environment or in .env), "
                f"or name another one in {place}.api_key_env"
            )


def require_harness(workspace: Workspace, environment: str) -> None:
    """Refuse to begin with a committed harness that does not read; a missing one is the run's own business.

    Raises:
        HarnessError: names the file and what is wrong.
        RepositoryError: the workspace is no repository.
    """
    with open_repository(workspace.root) as repository:
        files = repository.read_files("HEAD", harness_folder(environment))
    if files:
        read_harness(files)


def missing_key(settings: ModelSettings, environ: Mapping[str, str]) -> str | None:
    """Return the variable that a model's key should be in and is not."""
    name = settings.api_key_env
    return name if settings.kind == "openai" and name is not None and not environ.get(name) else None


async def examine(
    workspace: Workspace | None, config: Config, environ: Mapping[str, str], *, is_offline: bool
) -> list[Finding]:
    """Look at everything, in the order in which one would mend it.

    Args:
        workspace: None outside one; its state is then passed over.
        environ: where keys are looked up.
        is_offline: do not ask the model.
    """
    return [
        _python(),
        _git(),
        *_extras(),
        *_environments(config),
        await _isolation(config),
        await _model(config.model, environ, is_offline=is_offline),
        *_agents(config, environ),
        _proposer_sandbox(config, environ),
        _sqlite(),
        *(_workspace(workspace, config) if workspace else ()),
    ]


def _python() -> Finding:
    detail = ".".join(str(part) for part in sys.version_info[:3])
    if sys.version_info[:2] >= OLDEST_PYTHON:
        return Finding(name="python", status="ok", detail=detail)
    return Finding(name="python", status="missing", detail=detail, mend="install Python 3.11 or newer", blocks=True)


def _git() -> Finding:
    mend = f"install git {'.'.join(map(str, OLDEST_GIT))} or newer"
    if shutil.which("git") is None:
        return Finding(name="git", status="missing", detail="not on PATH", mend=mend, blocks=True)
    said = subprocess.run(["git", "--version"], capture_output=True, text=True, check=False).stdout.strip()
    found = re.search(r"(\d+)\.(\d+)", said)
    is_recent = found is not None and (int(found[1]), int(found[2])) >= OLDEST_GIT
    return Finding(name="git", status="ok" if is_recent else "warn", detail=said, mend="" if is_recent else mend)


def _extras() -> Iterator[Finding]:
    """Look for what each optional extra of the package brings; `dev` is for this project's own tests."""
    about = metadata.metadata(DISTRIBUTION)
    for extra in sorted(set(about.get_all("Provides-Extra") or ()) - {"dev"}):
        required = [
            line for line in metadata.requires(DISTRIBUTION) or () if re.search(rf"extra == ['\"]{extra}['\"]", line)
        ]
        absent = [name for name in map(_distribution, required) if not _is_installed(name)]
        detail = f"{', '.join(absent)} not installed" if absent else ", ".join(map(_distribution, required))
        mend = f"pip install '{DISTRIBUTION}[{extra}]'" if absent else ""
        yield Finding(name=f"extra {extra}", status="missing" if absent else "ok", detail=detail, mend=mend)


def _distribution(requirement: str) -> str:
    """Return the name at the beginning of a requirement."""
    return re.split(r"[^A-Za-z0-9_.-]", requirement, maxsplit=1)[0]


def _is_installed(name: str) -> bool:
    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        return False
    return True


def _environments(config: Config) -> Iterator[Finding]:
    benchmarks = {name for one in benchmark_names() for name in find_benchmark(one).environments}
    for name in environment_names():
        try:
            card = make_environment(name, config.environments.get(name, {})).card
        except (EvolveError, ImportError) as error:
            is_needed = name == config.environment
            mend = f"evolve bench info {name}" if name in benchmarks else ""
            yield Finding(name=f"environment {name}", status="missing", detail=str(error), mend=mend, blocks=is_needed)
        else:
            detail = f"version {card.version}, digest {card.digest[:12]}"
            yield Finding(name=f"environment {name}", status="ok", detail=detail)
    if config.environment not in environment_names():
        yield Finding(
            name=f"environment {config.environment}",
            status="missing",
            detail="configured, not installed",
            mend="`evolve env list` shows those that are; set `environment` in evolve.toml",
            blocks=True,
        )


async def _isolation(config: Config) -> Finding:
    """Start a rule worker with whatever this kernel gives, and compare that with what is asked for."""
    minimum = config.harness.isolation
    try:
        async with WorkerPool(minimum_tier="rlimits") as pool:
            found = pool.isolation
    except EvolveError as error:
        return Finding(name="rule isolation", status="missing", detail=str(error), blocks=True)
    gaps = f"; missing: {', '.join(found.missing)}" if found.missing else ""
    if TIERS.index(found.tier) < TIERS.index(minimum):
        return Finding(
            name="rule isolation",
            status="missing",
            detail=f"{found.tier}, and {minimum} is the minimum{gaps}",
            mend=f"another kernel, or --set harness.isolation={found.tier} (rule code is then less shut in)",
            blocks=True,
        )
    return Finding(name="rule isolation", status="warn" if gaps else "ok", detail=f"{found.tier}{gaps}")


async def _model(settings: ModelSettings, environ: Mapping[str, str], *, is_offline: bool) -> Finding:
    """Make the model and ask it for one tiny call, where that is possible and allowed."""
    name = f"model {settings.id or settings.kind}"
    if absent := missing_key(settings, environ):
        mend = f"set {absent} in the environment or in .env, or name another variable in model.api_key_env"
        return Finding(name=name, status="missing", detail=f"no key in {absent}", mend=mend, blocks=True)
    try:
        model = create_model(settings.model_copy(update={"retries": 0, "timeout_s": PROBE_TIMEOUT_S}), environ=environ)
    except EvolveError as error:
        return Finding(name=name, status="missing", detail=str(error), mend="see [model] in evolve.toml", blocks=True)
    if is_offline or settings.kind in ("recorded", "scripted"):
        return Finding(name=name, status="ok", detail=f"{settings.kind}; not asked")
    try:
        answer = await probe_protocol(model)
    except EvolveError as error:
        mend = "mend what the message names, then `evolve doctor` again"
        return Finding(name=name, status="missing", detail=str(error), mend=mend, blocks=True)
    finally:
        await model.close()
    if answer == "tools":
        return Finding(name=name, status="ok", detail=f"answers with calls (protocol {settings.protocol})")
    wrong = "its calls do not parse at the endpoint" if answer == "malformed" else "it answers a call as text"
    other = "text" if settings.protocol == "tools" else "tools"
    mend = f'try protocol = "{other}" under [model] in evolve.toml'
    return Finding(name=name, status="warn", detail=f"{wrong} (protocol {settings.protocol})", mend=mend)


def _agents(config: Config, environ: Mapping[str, str]) -> Iterator[Finding]:
    more = Path(config.proposer.agents_file) if config.proposer.agents_file else None
    rows = shipped_rows()
    if more is not None and more.is_file():
        rows |= read_rows(more.read_text("utf-8"), str(more))
    for row in rows.values():
        is_needed = config.proposer.kind == "command" and config.proposer.agent == row.name
        program = shutil.which(row.program, path=environ.get("PATH"))
        if program is None:
            detail = f"{row.program} is not on PATH"
            yield Finding(name=f"agent {row.name}", status="missing", detail=detail, mend=row.install, blocks=is_needed)
        else:
            yield Finding(name=f"agent {row.name}", status="ok", detail=program)


def _proposer_sandbox(config: Config, environ: Mapping[str, str]) -> Finding:
    """Try to shut a program in as a coding agent would be."""
    name, mode = "proposer sandbox", config.proposer.sandbox
    is_needed = config.proposer.kind == "command"
    if mode == "off":
        told = f"UNPROTECTED: switched off. {OUTSIDE}" if is_needed else "switched off"
        return Finding(name=name, status="warn", detail=told, mend="--set proposer.sandbox=auto")
    found = find_sandbox(environ)
    if found.sandbox is not None:
        return Finding(name=name, status="ok", detail=f"{found.sandbox.name}; looked out of it and saw nothing")
    told = f"UNPROTECTED: coding agents run outside any sandbox ({found.reason}). {OUTSIDE}"
    blocks = is_needed and mode == "required"
    return Finding(name=name, status="missing", detail=told, mend=MEND, blocks=blocks)


def _sqlite() -> Finding:
    detail = sqlite3.sqlite_version
    if sqlite3.sqlite_version_info >= SAFE_SQLITE:
        return Finding(name="sqlite", status="ok", detail=detail)
    safe = ".".join(map(str, SAFE_SQLITE))
    detail += f": before {safe} two writers at once could, rarely, damage a ledger; evolve lets one write"
    return Finding(name="sqlite", status="warn", detail=detail, mend=f"a Python built with SQLite {safe} or newer")


def _workspace(workspace: Workspace, config: Config) -> Iterator[Finding]:
    yield _repository(workspace, config)
    yield _ledger(workspace, config)
    yield _lock(workspace)
    if workspace.stop_file.exists():
        detail = f"{workspace.stop_file} is left over; the next run removes it"
        yield Finding(name="stop file", status="warn", detail=detail)


def _repository(workspace: Workspace, config: Config) -> Finding:
    folder = harness_folder(config.environment)
    try:
        with open_repository(workspace.root) as repository:
            changed = repository.changed_paths(folder)
            has_harness = repository.harness_tree("HEAD", config.environment) is not None
        require_harness(workspace, config.environment)
    except HarnessError as error:
        mend = f"mend the file, then `evolve harness check {folder}`, then commit"
        return Finding(name="repository", status="missing", detail=str(error), mend=mend, blocks=True)
    except EvolveError as error:
        return Finding(name="repository", status="missing", detail=str(error), mend="evolve init", blocks=True)
    if changed:
        detail, mend = f"{changed[0]} is not committed", f"git add {folder} && git commit, or undo the changes"
        return Finding(name="repository", status="missing", detail=detail, mend=mend, blocks=True)
    if not has_harness:
        mend = f"write {folder}/harness.toml and commit it"
        return Finding(name="repository", status="missing", detail=f"no {folder} at HEAD", mend=mend, blocks=True)
    return Finding(name="repository", status="ok", detail=f"{workspace.root}, {folder} is clean")


def _ledger(workspace: Workspace, config: Config) -> Finding:
    if not config.ledger.url and not (workspace.state / "ledger.sqlite").exists():
        return Finding(name="ledger", status="ok", detail="no runs yet")
    try:
        with open_ledger(workspace, config, is_read_only=True) as ledger:
            runs = ledger.runs()
    except EvolveError as error:
        return Finding(name="ledger", status="missing", detail=str(error), blocks=True)
    open_runs = [run.run_id for run in runs if run.status is not RunStatus.DONE]
    number = "1 run" if len(runs) == 1 else f"{len(runs)} runs"
    detail = number + (f", not done: {', '.join(open_runs)}" if open_runs else "")
    mend = f"evolve run --resume {open_runs[0]}" if open_runs else ""
    return Finding(name="ledger", status="warn" if open_runs else "ok", detail=detail, mend=mend)


def _lock(workspace: Workspace) -> Finding:
    if not workspace.lock_file.exists():
        return Finding(name="lock", status="ok", detail="free")
    try:
        with WorkspaceLock(workspace.lock_file, wait_s=0.0):
            return Finding(name="lock", status="ok", detail="free")
    except WorkspaceBusy as error:
        return Finding(name="lock", status="warn", detail=str(error))
