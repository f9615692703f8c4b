"""A run that waits for its first candidate, made once and copied for each story."""

import shutil
from pathlib import Path

import gate_story
import pytest

from evolve.workspace import Workspace


@pytest.fixture(scope="session")
def _waiting(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return gate_story.begin(tmp_path_factory.mktemp("waiting") / "ws", model=gate_story.sampled()).root


@pytest.fixture
def waiting(_waiting: Path, tmp_path: Path) -> Workspace:
    """Return a workspace of its own in which a sampled run waits for a candidate by hand."""
    return Workspace(shutil.copytree(_waiting, tmp_path / "ws", symlinks=True))
