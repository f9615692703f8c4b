"""A small workspace from `init` to the report, step by step, and all that it leaves behind.

A step that a kill cut off is run again, as a user would; the story goes on until it is told.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import small_run
from watched import Board, Effect

from evolve.cli.place import Place
from evolve.cli.reporting import report_of
from evolve.cli.reviewing import accept, reject
from evolve.cli.sealing import freeze_committed
from evolve.config import Config
from evolve.evaluate import evaluate
from evolve.records import Json
from evolve.report import write_html
from evolve.repository import LOOKS, Repository, open_repository, run_branch
from evolve.seal import is_untold
from evolve.store.ledger import Ledger
from evolve.traces import Traces
from evolve.workspace import Workspace, start_workspace

SETTINGS = ("environments.household={train=20,guard=12,heldout=4}", "iterations=2", "rollout.retries=0")
RUN, ACCEPTED = "household-001", "household-001-02"
PASSING = {"wall_s", "recorded_at", "trace_offset"}
"""What depends on the clock, or on the place of a line."""


class Undisturbed(NamedTuple):
    """Every effect of the story in order, those that happened while nobody held the lock, and what is left where.

    `frozen` is a copy of the place as it was before the look at the held-out tasks.
    """

    place: Path
    frozen: Path
    effects: list[Effect]
    unlocked: list[Effect]
    remains: Json


def workspace_in(place: Path) -> Workspace:
    """Return the story's workspace inside a folder."""
    return Workspace(place / "ws")


def configured() -> Config:
    return small_run.configured(*SETTINGS)


def _desk(place: Path) -> Place:
    return Place(workspace_in(place), configured(), {}, small_run.ENVIRON)


def _init(place: Path) -> None:
    start_workspace(workspace_in(place).root, ["household"], date=small_run.START)


def _run(place: Path) -> None:
    workspace = workspace_in(place)
    small_run.run(workspace, *SETTINGS, resume=RUN if RUN in runs_of(workspace) else None)


def _reject(place: Path) -> None:
    reject(_desk(place), [ACCEPTED])


def _accept(place: Path) -> None:
    accept(_desk(place), [ACCEPTED])


def _freeze(place: Path) -> None:
    freeze_committed(_desk(place), "household", "v1")


def _evaluate(place: Path) -> None:
    asyncio.run(
        evaluate(
            workspace_in(place),
            configured(),
            name="v1",
            environ=small_run.ENVIRON,
            progress=small_run.Notes(),
            model=small_run.scripted(),
            tell=lambda _: _remember(place, "evaluate"),
        )
    )


def _report(place: Path) -> None:
    found = report_of(_desk(place), RUN)
    write_html(found, workspace_in(place).reports / f"{RUN}.html")


STEPS: dict[str, Callable[[Path], None]] = {
    "init": _init,
    "run": _run,
    "reject": _reject,
    "accept": _accept,
    "freeze": _freeze,
    "evaluate": _evaluate,
    "report": _report,
    "freeze again": _freeze,
}
"""The last changes nothing. It holds the lock and so clears away what a kill just before it may have left."""


def tell(board: Board, place: Path, last: str = "freeze again") -> None:
    """Go on with the story from the first step that has not ended, up to and with `last`."""
    os.environ.update(small_run.ENVIRON)
    steps = list(STEPS)
    for name in steps[told(place) : steps.index(last) + 1]:
        board.say(name)
        STEPS[name](place)
        _remember(place, name)


def tell_again(board: Board, place: Path, name: str) -> None:
    """Do one step of a story that has been told."""
    os.environ.update(small_run.ENVIRON)
    board.say(name)
    STEPS[name](place)


def told(place: Path) -> int:
    """Return how many steps have ended, or have shown all that they are for."""
    memory = _memory(place)
    return int(memory.read_text() or 0) if memory.exists() else 0


def _remember(place: Path, name: str) -> None:
    """Note that a step was told: the user's memory, which lies beside the watched folder and is no effect of evolve."""
    _memory(place).write_text(str(max(told(place), list(STEPS).index(name) + 1)))


def _memory(place: Path) -> Path:
    return place.with_name(f"{place.name}.told")


def copy(place: Path, to: Path) -> Path:
    """Copy a place and the user's memory of it."""
    shutil.copytree(place, to, symlinks=True, dirs_exist_ok=True)
    shutil.copy(_memory(place), _memory(to))
    return to


def is_told(place: Path) -> bool:
    """Return whether the story has come to its end."""
    return told(place) == len(STEPS)


def runs_of(workspace: Workspace) -> list[str]:
    """Return the runs on record; none where there is no ledger yet."""
    if not (workspace.state / "ledger.sqlite").exists():
        return []
    with Ledger(workspace.ledger_url, is_read_only=True) as ledger:
        return [entry.run_id for entry in ledger.runs()]


def remains(place: Path) -> Json:
    """Return all that the story decided, counted and left on the disk, in a form that is equal for equal stories."""
    workspace = workspace_in(place)
    with Ledger(workspace.ledger_url, is_read_only=True) as ledger, open_repository(workspace.root) as repository:
        candidates = ledger.candidates(RUN)
        looks = ledger.looks()
        return {
            "runs": [entry.model_dump() for entry in ledger.runs()],
            "totals": ledger.totals(RUN).model_dump(),
            "episodes": [episode.model_dump(exclude=PASSING) for episode in ledger.episodes(RUN)],
            "uses": {
                f"{entry.candidate.candidate_id}": [
                    episode.episode_id for episode in ledger.episodes(RUN, arm=entry.candidate.candidate_id)
                ]
                for entry in candidates
            },
            "patterns": [entry.model_dump() for entry in ledger.patterns(RUN)],
            "stages": {e.candidate.number: ledger.stages(e.candidate.candidate_id) for e in candidates},
            "candidates": [entry.model_dump() for entry in candidates],
            "predictions": ledger.predictions(),
            "controls": ledger.self_checks(RUN),
            "verdicts": [e.verdict.evidence_digest for e in candidates if e.verdict],
            "guard_uses": ledger.guard_uses("household"),
            "freezes": ledger.freezes(),
            "looks": [
                {name: value for name, value in (entry.result or {}).items() if name != "look"} for entry in looks
            ],
            "look_episodes": [
                [episode.model_dump(exclude=PASSING) for episode in ledger.look_episodes(entry.look.look_id)]
                for entry in looks
            ],
            "misplaced traces": misplaced(ledger, workspace),
            "completions": completion_keys(workspace),
            "branch": repository.git.run("log", "--format=%H %T%n%B", run_branch(RUN)),
            "refs": refs_of(repository),
            "head": repository.git.run("log", "--format=%H %T%n%B"),
            "status": repository.git.run("status", "--porcelain", "--untracked-files=all"),
            "worktrees": repository.git.run("worktree", "list", "--porcelain").count("worktree "),
            "fsck": fsck(workspace.root),
            "ledger": integrity(ledger),
            "files": files_in(place),
        }


def refs_of(repository: Repository) -> list[str]:
    """Return all refs; the mark of a look, whose name depends on the clock, without its name and content."""
    refs = repository.git.run("for-each-ref", "--format=%(refname) %(objecttype) %(objectname)").splitlines()
    return [LOOKS if ref.startswith(LOOKS) else ref for ref in refs]


def untold_looks(place: Path) -> int:
    """Return how many looks git does not remember as told."""
    workspace = workspace_in(place)
    with Ledger(workspace.ledger_url, is_read_only=True) as ledger, open_repository(workspace.root) as repository:
        return sum(is_untold(repository, entry.look) for entry in ledger.looks())


def misplaced(ledger: Ledger, workspace: Workspace) -> list[str]:
    """Return the episodes whose row points at something else than their trace."""
    traces = Traces(workspace.traces)
    rows = [*ledger.episodes(RUN), *(row for look in ledger.looks() for row in ledger.look_episodes(look.look.look_id))]
    return [
        row.episode_id for row in rows if traces.read(row.trace_path, row.trace_offset).episode_id != row.episode_id
    ]


def completion_keys(workspace: Workspace) -> list[str]:
    """Return the key of each stored completion: one that stands twice was asked twice."""
    lines = [line for file in (workspace.traces / "completions").glob("*") for line in file.read_text().splitlines()]
    return sorted(re.search(r'"key":"(\w+)"', line)[1] for line in lines)  # type: ignore[index]


def fsck(root: Path) -> str:
    """Return what git finds wrong, and nothing about objects that nobody refers to."""
    check = subprocess.run(
        ["git", "-C", str(root), "fsck", "--full", "--strict", "--no-dangling"],
        capture_output=True,
        text=True,
        check=False,
    )
    return f"{check.returncode} {check.stdout}{check.stderr}"


def integrity(ledger: Ledger) -> str:
    """Return what SQLite finds wrong in the whole file."""
    import sqlite3

    with sqlite3.connect(f"file:{ledger._name}?mode=ro", uri=True) as connection:
        found = (
            connection.execute("PRAGMA integrity_check").fetchall()
            + connection.execute("PRAGMA foreign_key_check").fetchall()
        )
    connection.close()
    return str(found)


def files_in(place: Path) -> list[str]:
    """Return every file and folder except git's objects: what a kill leaves lying about shows here."""
    found = (path.relative_to(place).as_posix() for path in place.rglob("*"))
    return sorted(path for path in found if ".git/objects" not in path and not path.endswith((".sqlite-shm", "-wal")))
