"""Every transition of evolve that reaches the disk: where it shows, and what a run after a kill makes of it.

The one list: tests kill evolve in each of these transitions and fill the disk in each, a test holds the list to what
the watched story really does, both ways, and docs/crash-safety.md shows it.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from watched import Effect


class Transition(NamedTuple):
    """One kind of change.

    `path` is matched below the folder that holds the workspace `ws`; `row` is looked for in what the transaction has
    changed, `op` names the kinds of call; empty fits all. The first of the list that fits an effect is its transition.
    """

    name: str
    path: str
    after_a_kill: str
    row: str = ""
    op: str = ""
    step: str = ""

    def fits(self, effect: Effect) -> bool:
        """Return whether an effect belongs to this transition."""
        return (
            re.fullmatch(self.path, effect.path) is not None
            and (not self.row or re.search(rf"\b{self.row}\b", effect.statement) is not None)
            and (not self.op or effect.op in self.op.split())
            and self.step in ("", effect.step)
        )


_STATE = r"ws/\.evolve"
_LEDGER = rf"{_STATE}/ledger\.sqlite"
_WAL = rf"{_LEDGER}-wal"
_CANDIDATE = rf"{_STATE}/candidates/[^/]+"
_COMMIT = "write sync"

TRANSITIONS = (
    # a workspace
    Transition("starting files", r"\.ws\.new(/.*)?", "`init` begins its hidden draft anew"),
    Transition("workspace appears", r"ws", "it is there whole, or `init` makes it", op="rename"),
    # the lock
    Transition("lock file", rf"{_STATE}(/lock)?", "the kernel has given the lock back"),
    Transition("name of the holder", rf"{_STATE}/lock\.holder(\.draft)?", "the next holder writes its own"),
    # the ledger as files
    Transition("new ledger", rf"{_STATE}/\.ledger\.sqlite\..*", "the draft of a dead process is removed"),
    Transition("ledger appears", _LEDGER, "it is there whole, or the draft is made anew", op="link"),
    Transition("WAL file comes and goes", _WAL, "SQLite makes it, or reads what it holds", op="create remove truncate"),
    Transition("index of the WAL", rf"{_LEDGER}-shm", "SQLite makes it again from the WAL"),
    Transition("number of changes", rf"{_LEDGER}-changes", "it may lag behind the ledger, and never leads"),
    # rows: SQLite rolls back what was not committed; what was is found by its key
    Transition("look opens or closes", _WAL, "an open look is taken up and not counted again", "looks", _COMMIT),
    Transition("held-out episode", _WAL, "on record it is not played again", "look_episodes", _COMMIT),
    Transition("episode", _WAL, "on record it is not played again", "insert episodes", _COMMIT),
    Transition("use of an episode", _WAL, "the same use is one row", "insert run_episodes", _COMMIT),
    Transition("patterns", _WAL, "those of the iteration are replaced", "insert patterns", _COMMIT),
    Transition("candidate", _WAL, "the same again changes nothing", "insert candidates", _COMMIT),
    Transition("A/A control", _WAL, "the first result of an attempt stands", "self_checks", _COMMIT),
    Transition("gate stage", _WAL, "the first result of a stage stands", "stage_results", _COMMIT),
    Transition("use of the guard tasks", _WAL, "the same use is one row", "guard_uses", _COMMIT),
    Transition("predictions settled", _WAL, "they come out the same", "update predictions", _COMMIT),
    Transition("verdict", _WAL, "the same again changes nothing, another is refused", "verdicts", _COMMIT),
    Transition("gate begins", _WAL, "after the verdict it changes nothing", "update candidates", _COMMIT, "run"),
    Transition("person refuses", _WAL, "refused is refused", "update candidates", _COMMIT, "reject"),
    Transition("person takes", _WAL, "the commit is found, the row follows", "update candidates", _COMMIT, "accept"),
    Transition("commitment to the held-out tasks", _WAL, "the first one stands", "commitments", _COMMIT),
    Transition("ruler of a run", _WAL, "the first one stands and is compared", "rulers", _COMMIT),
    Transition("frozen version", _WAL, "the tag came first; freezing again adds the row", "freezes", _COMMIT),
    Transition("run begins, goes on, ends", _WAL, "a run of that id is taken up", "runs", _COMMIT),
    Transition("rows move into the ledger file", rf"{_LEDGER}(-wal)?", "they are in the WAL still"),
    # episodes and completions
    Transition("folder of traces", r"ws/traces/[^.]*", "it is made where it is missing"),
    Transition(
        "trace", r"ws/traces/household/.*\.jsonl", "a torn last line is cut off; one without a row does not count"
    ),
    Transition("completion", r"ws/traces/completions/.*\.jsonl", "a torn last line is cut off; it is asked anew"),
    # a candidate
    Transition("what a proposer gets", rf"{_STATE}/candidates|{_CANDIDATE}(/.*)?", "it is written anew"),
    Transition("checkout for the gate", rf"{_STATE}/worktrees(/.*)?", "removed, with its entry, and made anew"),
    Transition("entry of a checkout", r"ws/\.git/worktrees(/.*)?", "forgotten, and made anew"),
    # git
    Transition("objects", r"ws/\.git/objects/.*", "equal content has an equal name; half a file has none"),
    Transition("private index", r"ws/\.git/evolve-index-.*", "removed while the workspace lock is held"),
    Transition(
        "mark of a look", r"ws/\.git/(logs/)?refs/evolve/looks(/.*)?", "written again from the ledger, which came first"
    ),
    Transition(
        "ref of a candidate",
        r"ws/\.git/(logs/)?refs/evolve(/.*)?",
        "its lock is removed; moved already is done",
    ),
    Transition(
        "branch of a run",
        r"ws/\.git/(logs/)?refs/heads/evolve(/.*)?",
        "its lock is removed; the commit made again has the same id",
    ),
    Transition("note of a landing", r"ws/\.git/evolve-landing.*", "without it nothing has moved yet"),
    Transition(
        "the user's branch",
        r"ws/\.git/((logs/)?refs/heads/main(\.lock)?|(logs/)?HEAD(\.lock)?)",
        "the note says what was under way: it is completed or forgotten, its locks are removed",
    ),
    Transition("the user's index", r"ws/\.git/index(\.lock)?", "the note says that it was ours: completed"),
    Transition("the user's files", r"ws/harness_artifacts/.*", "half written they are written again; edited never"),
    Transition("tag of a frozen version", r"ws/\.git/(refs/tags/.*|TAG_EDITMSG)", "its lock is removed; tagging again"),
    # a report
    Transition("report", rf"{_STATE}/reports(/.*)?", "the old one stands until the new one is whole"),
)


def transition_of(effect: Effect) -> Transition | None:
    """Return the transition that an effect belongs to, or None."""
    return next((transition for transition in TRANSITIONS if transition.fits(effect)), None)
