"""Each transition of the list is cut off by a kill and by a full disk, and the story comes to the same end."""

from __future__ import annotations

import errno
import os
from multiprocessing.context import ForkServerContext
from pathlib import Path

import pytest
import story
import watched
from fates import GROWING, FullDisk, KillOnce, central_points, point_of
from story import Undisturbed
from transitions import TRANSITIONS, transition_of
from watched import Effect, Fate

READING = {"WAL file comes and goes", "index of the WAL"}
"""What SQLite makes for those who only read."""
WITHOUT_LOCK = {"starting files", "workspace appears", "lock file", "name of the holder", "report", *READING}
FULL = (
    "starting files",
    "name of the holder",
    "new ledger",
    "episode",
    "verdict",
    "trace",
    "completion",
    "what a proposer gets",
    "checkout for the gate",
    "objects",
    "ref of a candidate",
    "note of a landing",
    "the user's index",
    "frozen version",
    "look opens or closes",
    "report",
)
STRIDE = 1 if os.environ.get("EVOLVE_TEST_ALL") else 3
"""Each point costs a start of evolve: a run of the suite takes every third one, CI takes all."""


def test_the_list_of_transitions_is_what_a_story_really_does(undisturbed: Undisturbed) -> None:
    """Every effect on the disk from `init` to the report belongs to a transition, and every transition occurs."""
    found = {effect: transition_of(effect) for effect in undisturbed.effects}
    assert [effect for effect, transition in found.items() if transition is None] == []
    occurring = {transition.name for transition in found.values() if transition}
    assert [transition.name for transition in TRANSITIONS if transition.name not in occurring] == []


def test_the_page_shows_the_list() -> None:
    """docs/crash-safety.md has a row for each transition, in the order of the list."""
    page = (Path(__file__).parents[2] / "docs" / "crash-safety.md").read_text()
    rows = [line for line in page.splitlines() if line.startswith("| ")][2:]
    assert rows == [f"| {one.name} | {one.after_a_kill} |" for one in TRANSITIONS]


def test_the_story_has_something_to_lose(undisturbed: Undisturbed) -> None:
    """It rejects one candidate, takes another, freezes it and looks at the held-out tasks; all stores are sound."""
    left = undisturbed.remains
    assert [entry["state"] for entry in left["candidates"]] == ["rejected", "accepted"]
    assert left["candidates"][1]["review"] == "taken"
    assert "Evolve-Verdict: accept" in left["head"]
    assert len(left["freezes"]) == len(left["looks"]) == 1
    assert (left["fsck"], left["ledger"], left["status"], left["misplaced traces"]) == ("0 ", "[('ok',)]", "", [])
    assert len(set(left["completions"])) == len(left["completions"]) > 0


def test_nothing_changes_without_the_lock(undisturbed: Undisturbed) -> None:
    """While a command changes ledger, traces, refs or files it holds the workspace lock: two of them never meet."""
    assert {point_of(effect)[0] for effect in undisturbed.unlocked} <= WITHOUT_LOCK


def test_a_kill_in_every_transition_changes_nothing(
    processes: ForkServerContext, undisturbed: Undisturbed, place: Path
) -> None:
    """Killed once in each transition (see STRIDE), amid a write where it is one, the story ends as if undisturbed."""
    killer = KillOnce(list(central_points(undisturbed.effects).values())[::STRIDE])
    while not story.is_told(place):
        ended = watched.watch(processes, place, story.tell, place, decide=killer)
        assert ended.code in (None, 0), ended.said
    assert killer.left == []
    assert story.remains(place) == undisturbed.remains


def test_a_full_disk_is_told_in_one_line_and_loses_nothing(
    processes: ForkServerContext, undisturbed: Undisturbed, place: Path
) -> None:
    """Where the disk is full the command ends with 4 and says so once; with some space the story ends as ever."""
    points = central_points(undisturbed.effects, lambda effect: effect.op in GROWING)
    disk = FullDisk(points[name] for name in FULL[::STRIDE])
    while not story.is_told(place):
        disk.has_room()
        ended = watched.watch(processes, place, story.tell, place, decide=disk)
        if disk.is_full:
            assert ended.code == 4, ended.said
            assert ended.said.count("the disk is full; free some space") == ended.said.count("\n") == 1, ended.said
    assert disk.left == []
    assert story.remains(place) == undisturbed.remains


def test_a_kill_before_a_look_is_marked_as_told_costs_no_look(
    processes: ForkServerContext, undisturbed: Undisturbed, place: Path
) -> None:
    """The result was shown and the mark half made: evaluating again is the same look, asks nothing, and marks it."""
    story.copy(undisturbed.frozen, place)
    shown = list(story.STEPS).index("evaluate") + 1

    def kill_at_the_mark(effect: Effect) -> Fate:
        is_mark = effect.step == "evaluate" and point_of(effect)[0] == "mark of a look"
        return "kill" if is_mark and story.told(place) == shown else "go on"

    killed = watched.watch(processes, place, story.tell, place, decide=kill_at_the_mark)
    assert (killed.code, story.told(place)) == (None, shown)
    again = watched.watch(processes, place, story.tell_again, place, "evaluate", decide=lambda _: "go on")
    assert again.code == 0, again.said
    while not story.is_told(place):
        assert watched.watch(processes, place, story.tell, place, decide=lambda _: "go on").code == 0
    assert story.remains(place) == undisturbed.remains
    assert story.untold_looks(place) == 0


@pytest.mark.parametrize("step", ["run", "accept", "freeze", "evaluate"])
def test_a_read_only_workspace_is_told_in_one_line(
    processes: ForkServerContext, undisturbed: Undisturbed, step: str
) -> None:
    """Where nothing can be written a command ends with 4, says so in one line, and leaves all as it was."""

    def refuse(effect: Effect) -> Fate:
        return errno.EROFS if effect.op != "sync" else "go on"

    ended = watched.watch(processes, undisturbed.place, story.tell_again, undisturbed.place, step, decide=refuse)
    assert (ended.code, ended.said.count("\n")) == (4, 1), ended.said
    assert "the file system is read-only; work in another folder" in ended.said
    assert story.remains(undisturbed.place) == undisturbed.remains


def test_a_git_that_outlives_its_evolve_disturbs_nobody(
    processes: ForkServerContext, undisturbed: Undisturbed, place: Path
) -> None:
    """Killed while its git is at work, evolve leaves the lock to that git; the next command waits for it."""
    points = central_points(undisturbed.effects, lambda effect: effect.program == "git" and effect.step != "init")
    killer = KillOnce(list(points.values())[::STRIDE], "kill evolve alone")
    orphans = []
    while not story.is_told(place):
        ended = watched.watch(processes, place, story.tell, place, decide=killer)
        orphans += [ended.orphan] if ended.orphan else []
        assert ended.code in (None, 0), ended.said
    for orphan in orphans:
        orphan.join()
    assert killer.left == []
    assert story.remains(place) == undisturbed.remains
