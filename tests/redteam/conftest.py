"""A world with a canary in each place that an agent must not reach, and what a hostile agent brought out of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from evolve.proposers.sandbox import Enclosure, find_sandbox
from evolve.redteam.world import Attacked, World, build_world


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with build_world(tmp_path_factory.mktemp("world")) as world:
        yield world


@pytest.fixture(scope="session")
def enclosure(world: World) -> Enclosure:
    """What shuts agents in on this machine; a machine without a sandbox skips what needs one."""
    found = find_sandbox()
    if found.sandbox is None:
        pytest.skip(f"no sandbox holds here: {found.reason}")
    return Enclosure(found.sandbox, hidden=world.hidden)


@pytest.fixture(scope="session")
def shut_in(world: World, enclosure: Enclosure) -> Attacked:
    """All attacks, tried inside the sandbox."""
    return world.attacked(enclosure)


@pytest.fixture(scope="session")
def let_loose(world: World, shut_in: Attacked) -> Attacked:
    """The control: the same attacks without it. Afterwards the world is not what it was."""
    return world.attacked(None, argv=world.orders(search=str(world.top)))  # to search a whole machine takes long


@pytest.fixture(scope="session")
def inside(shut_in: Attacked) -> dict[str, str]:
    """What each attack brought from inside."""
    return shut_in.spoils


@pytest.fixture(scope="session")
def outside(let_loose: Attacked) -> dict[str, str]:
    """What each attack brought without the sandbox."""
    return let_loose.spoils


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a workspace of its own."""
    folder = tmp_path / "workspace"
    folder.mkdir()
    (folder / "harness.toml").write_text('schema_version = 1\nenvironment = "desk"\n')
    return folder
