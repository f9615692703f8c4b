"""`evolve init` in a folder that is there: killed amid it, it takes nothing from the user."""

from __future__ import annotations

import shutil
import subprocess
from contextlib import suppress
from multiprocessing.context import ForkServerContext
from pathlib import Path

import small_run
import watched
from fates import KillOnce, central_points
from watched import Board, Effect, Fate

from evolve.errors import UserError
from evolve.extend import add_environments
from evolve.workspace import Workspace, start_workspace

THEIRS = "*.log\n"
USER = ("-c", "user.name=u", "-c", "user.email=u@localhost")


def start(_: Board, place: Path) -> None:
    start_workspace(place / "ws", ["household"], date=small_run.START)


def add(_: Board, place: Path) -> None:
    """Add an environment; one that an addition before a kill had brought is there already."""
    with suppress(UserError):
        add_environments(Workspace(place / "ws"), ["service_desk"], date=small_run.START)


def left(root: Path) -> list[str]:
    """Return HEAD, what differs from it, and the files that are no objects of git."""
    asked = ("rev-parse", "HEAD"), ("status", "--porcelain", "--untracked-files=all"), ("fsck", "--no-dangling")
    said = [subprocess.run(["git", "-C", root, *words], check=True, capture_output=True, text=True) for words in asked]
    files = [path.relative_to(root).as_posix() for path in root.rglob("*") if "objects" not in path.parts]
    return [*(one.stdout for one in said), *sorted(files)]


def test_an_environment_that_is_added_amid_kills_is_added_once(processes: ForkServerContext, place: Path) -> None:
    """Killed once in each transition and called again, it leaves what an undisturbed one leaves."""
    start_workspace(place / "ws", ["household"], date=small_run.START)
    undisturbed = Path(shutil.copytree(place, place.with_name("undisturbed")))
    effects: list[Effect] = []

    def listen(effect: Effect) -> Fate:
        effects.append(effect)
        return "go on"

    assert watched.watch(processes, undisturbed, add, undisturbed, decide=listen).code == 0
    killer = KillOnce(central_points(effects).values())
    while killer.left:
        ended = watched.watch(processes, place, add, place, decide=killer)
        assert ended.code is None, (ended.said, killer.left)
    assert watched.watch(processes, place, add, place, decide=killer).code == 0
    assert left(place / "ws") == left(undisturbed / "ws")


def test_a_kill_takes_no_line_from_a_gitignore(processes: ForkServerContext, place: Path) -> None:
    """Killed amid writing to it, the user's lines are there; the next `init` says what to mend."""
    (place / "ws").mkdir()
    ignores = place / "ws" / ".gitignore"
    ignores.write_text(THEIRS)

    def tear(effect: Effect) -> Fate:
        return "tear" if effect.path == "ws/.gitignore" else "go on"

    assert watched.watch(processes, place, start, place, decide=tear).code is None
    assert ignores.read_text() != THEIRS
    assert ignores.read_text().startswith(THEIRS)
    again = watched.watch(processes, place, start, place, decide=lambda _: "go on")
    assert (again.code, "commit it first" in again.said) == (2, True)
    ignores.write_text(THEIRS)
    subprocess.run(["git", "-C", place / "ws", "add", "."], check=True)
    subprocess.run(["git", "-C", place / "ws", *USER, "commit", "-qm", "mine"], check=True)
    assert watched.watch(processes, place, start, place, decide=lambda _: "go on").code == 0
