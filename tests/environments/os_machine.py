"""What the tests of os_interaction share: the root file system of this machine, or the reason why there is none."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from evolve.environments.data import BenchmarkData
from evolve.environments.os_interaction import OsInteraction
from evolve.environments.os_interaction.benchmark import BENCHMARK, TRAIN
from evolve.environments.os_interaction.problems import Problem, Script
from evolve.environments.os_interaction.rootfs import Rootfs, default_folder, read_rootfs
from evolve.environments.os_interaction.sandbox import Sandbox, require_sandbox
from evolve.environments.os_interaction.session import OsSession
from evolve.errors import ConfigError
from evolve.records import Call, Observation

NO_ROOTFS = Rootfs(Path("/nowhere"), marker="none", digest="0" * 64)


def rootfs_here() -> Rootfs:
    """Return the root file system (EVOLVE_TEST_ROOTFS, else where it is built); skip where sandboxes cannot be had."""
    try:
        require_sandbox()
        return read_rootfs(Path(os.environ.get("EVOLVE_TEST_ROOTFS") or default_folder()))
    except ConfigError as error:
        pytest.skip(str(error))


def problem(**parts: object) -> Problem:
    """Return a task of our own making."""
    made: dict[str, object] = {
        "task_id": "own-0000",
        "description": "Do it.",
        "family": "check",
        "init": (),
        "start": None,
        "match": None,
        "check": (Script("bash", "true"),),
        "example": None,
    }
    return Problem(**{**made, **parts})  # type: ignore[arg-type]


@contextmanager
def opened(rootfs: Rootfs, task: Problem | None = None, *, timeout_s: float = 30) -> Iterator[OsSession]:
    """Open a session on a task of our own making."""
    session = OsSession(task or problem(), Sandbox(rootfs), timeout_s)
    try:
        session.prepare()
        yield session
    finally:
        session.close()


def bash(session: OsSession, script: str) -> Observation:
    """Run a script as an agent does."""
    return session.step(call("bash_action", script=script))


def call(tool: str, **arguments: object) -> Call:
    """Return a call."""
    return Call(tool=tool, arguments=arguments)


def environment(folder: Path, rootfs: Rootfs = NO_ROOTFS, *, open_file: str = TRAIN) -> OsInteraction:
    """Return the environment over real data."""
    return OsInteraction(BenchmarkData(BENCHMARK, folder), rootfs, {}, open_file=open_file, timeout_s=120)
