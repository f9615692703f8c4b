"""What a candidate must also pass after the paired test: carry over to other tasks, and break none in return.

Guards can only veto or say that they cannot tell. Their limits were chosen by simulation.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from evolve.figures import points
from evolve.gate.interval import gain_interval
from evolve.gate.scores import PairedScores, TaskScores
from evolve.gate.signflip import pair_p
from evolve.records import Json

GuardOutcome = Literal["pass", "veto", "cannot_tell"]

CARRIED_SHARE = 1 / 3  # of the gain on training tasks that must appear on guard tasks
FEWEST_GUARD_TASKS = 10
GUARD_TRIALS = 16
DROP_P = 0.10
FEWEST_GROUP_TASKS = 4


@dataclass(frozen=True, slots=True)
class GuardDecision:
    """What a guard says. `reasons` are whole sentences with their numbers."""

    outcome: GuardOutcome
    reasons: tuple[str, ...]
    numbers: Json


def carry_over(scores: PairedScores, *, train_gain: float) -> GuardDecision:
    """Decide whether the gain on training tasks carries over to the guard fold, whose traces no proposer saw.

    The mean gain over guard tasks must be above 0 and at least a third of the gain on training tasks. This is the
    one-bit form of the reusable holdout (Dwork et al. 2015, Science 349:636): so little leaks that the fold wears out
    slowly; each use is one look and must be counted by the caller. Fewer than 10 guard tasks cannot tell.
    """
    guard = scores.fold("guard")
    needed, gain = train_gain * CARRIED_SHARE, guard.effect
    tasks = len(guard.differences)
    numbers: Json = {"tasks": tasks, "gain": gain, "needed": needed, "train_gain": train_gain, "pairs": guard.pairs}
    if tasks < FEWEST_GUARD_TASKS:
        reason = f"{tasks} guard tasks are too few to see a gain carry over ({FEWEST_GUARD_TASKS} are needed)."
        return GuardDecision("cannot_tell", (reason,), numbers)
    found = f"On {tasks} guard tasks the gain is {gain_interval(guard)}; {points(needed)} were needed"
    if gain > 0.0 and gain >= needed:
        return GuardDecision("pass", (f"{found}.",), numbers)
    return GuardDecision("veto", (f"{found}: what was gained on the training tasks does not carry over.",), numbers)


def confirmation(scores: PairedScores, *, claimed: float) -> GuardDecision:
    """Ask fresh trials, which had no part in the accept, whether the gain is there again.

    A test that stops when it looks good overstates the gain (the winner's curse), so the fresh estimate is the one to
    report and to keep. The error rate is the paired test's; this only refuses to commit what shows no gain at all.

    Args:
        scores: fresh trials of both arms on training tasks, 4 per task or more.
        claimed: the gain at the accept.
    """
    fresh = scores.fold("train")
    interval = gain_interval(fresh)
    numbers: Json = {"gain": interval.estimate, "interval": [interval.low, interval.high], "claimed": claimed}
    found = f"On {fresh.pairs} fresh pairs the gain is {interval}; {points(claimed)} was claimed at the accept"
    if interval.estimate > 0.0:
        return GuardDecision("pass", (f"{found}.",), numbers)
    return GuardDecision("cannot_tell", (f"{found}: it did not show again.",), numbers)


def regression(scores: PairedScores) -> GuardDecision:
    """Veto a drop in a group of tasks that is not the doing of one task.

    Groups are the families; families of fewer than 4 tasks are judged together. A group vetoes where the one-sided
    sign-flip mid-p of a drop is at most .10 both with all its tasks and without the one that lost most: one flaky task
    can therefore never veto, whatever it does.
    """
    drops = {name: _drop_p(group) for name, group in _groups(scores).items()}
    fallen = {name: p for name, p in drops.items() if p <= DROP_P}
    numbers: Json = {"drop_p": drops}
    if not fallen:
        return GuardDecision("pass", (f"No group of tasks got worse ({len(drops)} looked at).",), numbers)
    groups = _groups(scores)
    reasons = tuple(
        f"The {len(groups[name].tasks)} tasks of {name} got worse by {-100 * groups[name].effect:.1f} points per task "
        f"(p = {p:.2g}, the worst task left out)."
        for name, p in sorted(fallen.items())
    )
    return GuardDecision("veto", reasons, numbers)


def once_fixed(scores: PairedScores, suite: Collection[str]) -> GuardDecision:
    """Veto where tasks that accepted candidates once mended (`suite`, by task id) break again, judged as one group."""
    kept = scores.where(lambda task: task.task_id in suite)
    if not kept.tasks:
        return GuardDecision("pass", ("No task of the suite of once fixed tasks was measured.",), {"tasks": 0})
    p = _drop_p(kept)
    numbers: Json = {"tasks": len(kept.tasks), "drop_p": p, "effect": kept.effect}
    moved = f"{points(kept.effect)} points per task (p of a drop {p:.2g})"
    found = f"The {len(kept.tasks)} once fixed tasks moved by {moved}"
    if p <= DROP_P:
        return GuardDecision("veto", (f"{found}: they break again.",), numbers)
    return GuardDecision("pass", (f"{found}.",), numbers)


def _groups(scores: PairedScores) -> dict[str, PairedScores]:
    sizes: dict[str, int] = {}
    for task in scores.tasks:
        sizes[task.family] = sizes.get(task.family, 0) + 1
    rows: dict[str, list[TaskScores]] = {}
    for task in scores.tasks:
        name = task.family if sizes[task.family] >= FEWEST_GROUP_TASKS else "small families together"
        rows.setdefault(name, []).append(task)
    return {name: PairedScores(tuple(members)) for name, members in rows.items()}


def _drop_p(group: PairedScores) -> float:
    """Return the p of a drop: the larger of that with all tasks and that without the task that lost most."""
    if len(group.tasks) < 2:
        return 1.0
    worst = min(group.tasks, key=lambda task: (sum(task.steps), task.task_id))
    rest = group.where(lambda task: task.task_id != worst.task_id)
    return max(1.0 - pair_p(group), 1.0 - pair_p(rest))
