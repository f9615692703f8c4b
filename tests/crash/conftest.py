"""What the crash tests share: watched processes, and the story as it goes when nobody disturbs it."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from multiprocessing.context import ForkServerContext
from pathlib import Path

import forked
import pytest
import story
import watched
from story import Undisturbed
from watched import Effect


@pytest.fixture(scope="session")
def processes() -> ForkServerContext:
    if not watched.is_possible():
        pytest.skip("this kernel lets no process be watched (Linux 5.9 on x86_64 or aarch64 does)")
    return forked.processes()


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder for a workspace; what the watcher keeps lies beside it."""
    folder = tmp_path / "place"
    folder.mkdir()
    return folder


@pytest.fixture(scope="session")
def undisturbed(processes: ForkServerContext, tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    place = tmp_path_factory.mktemp("undisturbed") / "place"
    place.mkdir()
    effects, unlocked = [], []

    def decide(effect: Effect) -> watched.Fate:
        effects.append(effect)
        if is_free(story.workspace_in(place).lock_file):
            unlocked.append(effect)
        return "go on"

    ended = watched.watch(processes, place, story.tell, place, "freeze", decide=decide)
    assert (ended.code, ended.said) == (0, "")
    frozen = story.copy(place, place.with_name("frozen"))
    ended = watched.watch(processes, place, story.tell, place, decide=decide)
    assert (ended.code, ended.said) == (0, "")
    return Undisturbed(place, frozen, effects, unlocked, story.remains(place))


def is_free(lock_file: Path) -> bool:
    """Return whether nobody holds a lock."""
    for descriptor in _opened(lock_file):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def _opened(file: Path) -> Iterator[int]:
    if file.exists():
        descriptor = os.open(file, os.O_RDWR)
        try:
            yield descriptor
        finally:
            os.close(descriptor)
