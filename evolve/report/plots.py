"""The plots of a report. Each says in its alt text what it shows; shapes and words carry what colours do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evolve.figures import points
from evolve.records import Decision, FailureClass
from evolve.report.document import CandidateReport, IterationReport, LookReport, Report, TaskLine
from evolve.report.drawing import (
    BAD,
    CLASS_COLOURS,
    GOOD,
    INK,
    LINE,
    MUTED,
    NEW,
    OLD,
    REUSED,
    UNSURE,
    Plot,
    draw,
    label,
)
from evolve.report.wording import decision, percent

HALF = (5.4, 3.7)
MARKS = {Decision.ACCEPT: ("^", GOOD), Decision.REJECT: ("X", BAD), Decision.CANNOT_TELL: ("D", UNSURE)}
MOST_TASK_LABELS = 40


def score_plot(report: Report) -> Plot:
    """Plot what the incumbent solves in each iteration, and what each tested candidate measured."""
    iterations = report.iterations

    def paint(axes: Any) -> None:
        numbers = [each.number for each in iterations]
        rates = [100 * each.baseline.rate for each in iterations]
        reach = [(100 * each.baseline.ci95[0], 100 * each.baseline.ci95[1]) for each in iterations]
        axes.errorbar(
            numbers, rates, yerr=_bars(rates, reach), color=INK, marker="o", capsize=3, lw=1.8, elinewidth=1,
            label="incumbent, 95% interval",
        )  # fmt: skip
        for word, (mark, colour) in MARKS.items():
            _mark_candidates(axes, [each for each in iterations if _is(each, word)], word, mark, colour)
        axes.set(xlabel="iteration", ylabel="training tasks solved (%)", ylim=(-4, 104), xticks=numbers)
        axes.set_xlim(numbers[0] - 0.4, numbers[-1] + 0.7)
        axes.grid(axis="y")
        axes.legend(loc="upper left", bbox_to_anchor=(0, -0.18), ncols=2, handletextpad=0.4, columnspacing=1.2)

    told = "; ".join(_in_words(each) for each in iterations)
    return draw("score", "Training tasks solved by the incumbent", told, size=HALF, paint=paint)


def _mark_candidates(axes: Any, found: Sequence[IterationReport], word: Decision, mark: str, colour: str) -> None:
    """Mark candidates beside their iteration: where they measured, else on the incumbent's line."""
    at, heights, reach = [], [], []
    for each in found:
        assert each.candidate is not None
        start, effect, bounds = each.baseline.rate, each.candidate.effect, each.candidate.interval
        at.append(each.number + 0.3)
        heights.append(_within(start + (effect or 0.0)))
        low, high = bounds if bounds is not None and effect is not None else (0.0, 0.0)
        reach.append((_within(start + low), _within(start + high)))
    if found:
        axes.errorbar(
            at, heights, yerr=_bars(heights, reach), fmt=mark, color=colour, ms=8, capsize=3, elinewidth=1,
            label=f"candidate, {decision(word)}",
        )  # fmt: skip


def class_plot(report: Report) -> Plot:
    """Plot the failed training episodes of each iteration by class."""
    iterations = report.iterations

    def paint(axes: Any) -> None:
        numbers = [each.number for each in iterations]
        floor = [0] * len(numbers)
        for name in FailureClass:
            counts = [each.failure_classes[name] for each in iterations]
            bars = axes.bar(
                numbers, counts, bottom=floor, width=0.55, color=CLASS_COLOURS[name.value], label=name.value
            )
            axes.bar_label(bars, [str(n) if n else "" for n in counts], label_type="center", color="white", fontsize=9)
            floor = [low + n for low, n in zip(floor, counts, strict=True)]
        axes.set(xlabel="iteration", ylabel="failed training episodes", xticks=numbers)
        axes.set_xlim(numbers[0] - 0.6, numbers[-1] + 0.6)
        axes.set_ylim(0, max(floor) * 1.1 + 1)
        axes.yaxis.get_major_locator().set_params(integer=True)
        axes.grid(axis="y")
        axes.legend(loc="upper left", bbox_to_anchor=(0, -0.18), ncols=4, handletextpad=0.4, columnspacing=1.2)

    told = "; ".join(
        f"iteration {each.number}: " + ", ".join(f"{n} {name.value}" for name, n in each.failure_classes.items())
        for each in iterations
    )
    return draw("classes", "Why training tasks failed", told, size=HALF, paint=paint)


def task_plot(candidate: CandidateReport) -> Plot | None:
    """Plot each training task of the paired test with both arms; None where no paired test was reached."""
    tasks = candidate.tasks
    if not tasks:
        return None
    groups = (
        ("better", [(i, task) for i, task in enumerate(tasks) if task.change > 0], "^", GOOD),
        ("the same", [(i, task) for i, task in enumerate(tasks) if task.change == 0], "o", OLD),
        ("worse", [(i, task) for i, task in enumerate(tasks) if task.change < 0], "v", BAD),
    )

    def paint(axes: Any) -> None:
        for name, group, mark, colour in groups:
            _draw_tasks(axes, group, mark, colour, f"{name}: {len(group)}")
        axes.plot([], [], "o", mfc="none", color=MUTED, ms=7, label="incumbent")
        axes.set(ylabel="mean score (0 to 1)", ylim=(-0.12, 1.12), yticks=[0, 0.5, 1])
        axes.set_xlim(-0.8, len(tasks) - 0.2)
        axes.grid(axis="y")
        shared = _shared_start([task.task_id for task in tasks])
        if len(tasks) <= MOST_TASK_LABELS:
            names = [label(task.task_id[len(shared) :]) for task in tasks]
            axes.set_xticks(range(len(tasks)), names, rotation=90, fontsize=8)
        else:
            axes.set_xticks([])
        named = f" ({label(shared)}…)" if shared else ""
        axes.set_xlabel(f"{len(tasks)} training tasks{named}, most improved first")
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1.0), ncols=4, handletextpad=0.3, columnspacing=1.2)
        axes.set_title(axes.get_title(loc="left"), pad=30, loc="left")

    told = ", ".join(f"{len(group)} {name}" for name, group, _, _ in groups)
    title = f"Candidate {candidate.number} against the incumbent, task by task"
    return draw(f"tasks-{candidate.number}", title, f"{len(tasks)} tasks: {told}", size=(7.4, 3.2), paint=paint)


def _shared_start(names: Sequence[str]) -> str:
    """Return what all task ids begin with, up to its last dash: it need not stand under every mark."""
    first, last = min(names), max(names)
    same = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), 0)
    return first[: first.rfind("-", 0, same) + 1]


def _draw_tasks(axes: Any, group: Sequence[tuple[int, TaskLine]], mark: str, colour: str, name: str) -> None:
    places = [place for place, _ in group]
    old, new = [task.incumbent for _, task in group], [task.candidate for _, task in group]
    axes.vlines(places, old, new, color=colour, lw=2)
    axes.plot(places, old, "o", mfc="none", mec=MUTED, ms=7)
    axes.plot(places, new, mark, color=colour, ms=7 if mark != "o" else 4, label=name)


def heldout_plot(report: Report) -> Plot | None:
    """Plot base against frozen on held-out tasks, a pair of lines for each finished look; None where there is none."""
    looks = [look for look in report.looks if look.evaluation is not None]
    if not looks:
        return None

    def paint(axes: Any) -> None:
        for row, look in enumerate(reversed(looks)):
            _draw_look(axes, row, look, is_named=row == 0)
        names = [label(f"{look.look.frozen_name} (look {look.look.number})") for look in reversed(looks)]
        axes.set_yticks(range(len(looks)), names)
        axes.set(xlabel="held-out tasks solved (%), bars: 95% interval", xlim=(-3, 103), ylim=(-0.6, len(looks) - 0.4))
        axes.grid(axis="x")
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1.0), ncols=2, handletextpad=0.4)
        axes.set_title(axes.get_title(loc="left"), pad=30, loc="left")

    told = "; ".join(_look_in_words(look) for look in looks)
    size = (7.4, 1.7 + 0.7 * len(looks))
    return draw("heldout", "Held-out tasks: harness off against frozen harness", told, size=size, paint=paint)


def _draw_look(axes: Any, row: int, look: LookReport, *, is_named: bool) -> None:
    assert look.evaluation is not None
    arms = (
        ("base (harness off)", look.evaluation.base, row + 0.14, "o", OLD),
        ("with frozen harness", look.evaluation.frozen, row - 0.14, "s", NEW),
    )
    for name, arm, height, mark, colour in arms:
        rate, reach = [100 * arm.rate], [(100 * arm.ci95[0], 100 * arm.ci95[1])]
        axes.errorbar(
            rate, [height], xerr=_bars(rate, reach), fmt=mark, color=colour, ms=8, capsize=4, lw=2,
            label=name if is_named else None,
        )  # fmt: skip
        below = height < row
        place = (rate[0], height + (-0.09 if below else 0.09))
        side = "top" if below else "bottom"
        axes.annotate(f"{arm.successes}/{arm.n}", place, ha="center", va=side, fontsize=9, color=INK)


def token_plot(report: Report) -> Plot | None:
    """Plot for each candidate the tokens that were asked of the model and those of what had been asked before."""
    seen = [(c.number, c.divergence) for c in report.candidates if c.divergence is not None and c.divergence.tokens]
    if not seen:
        return None

    def paint(axes: Any) -> None:
        rows = range(len(seen))
        asked = [found.tokens_asked for _, found in seen]
        reused = [found.tokens_reused for _, found in seen]
        axes.barh(rows, asked, height=0.55, color=NEW, label="asked")
        axes.barh(rows, reused, left=asked, height=0.55, color=REUSED, label="reused, not asked again")
        for row, (_, found) in zip(rows, seen, strict=True):
            share = percent(found.tokens_asked / found.tokens)
            axes.annotate(f" {share} asked", (found.tokens, row), va="center", fontsize=9)
        axes.set_yticks(rows, [f"candidate {number}" for number, _ in seen])
        axes.set_xlabel("tokens, prompt and completion together, in the candidate's episodes")
        axes.set_xlim(0, max(found.tokens for _, found in seen) * 1.18)
        axes.invert_yaxis()
        axes.spines["left"].set_color(LINE)
        axes.grid(axis="x")
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1.0), ncols=2, handletextpad=0.4)
        axes.set_title(axes.get_title(loc="left"), pad=30, loc="left")

    told = "; ".join(f"candidate {n}: {found.tokens_asked} asked, {found.tokens_reused} reused" for n, found in seen)
    size = (7.4, 1.6 + 0.36 * len(seen))
    return draw("tokens", "What testing cost: tokens asked and reused", told, size=size, paint=paint)


def _is(iteration: IterationReport, word: Decision) -> bool:
    return iteration.candidate is not None and iteration.candidate.decision is word


def _within(share: float) -> float:
    """Return a share in percent, kept on the axis: another trial's gain may lead past all or nothing."""
    return 100 * min(1.0, max(0.0, share))


def _bars(centres: Sequence[float], reach: Sequence[tuple[float, float]]) -> list[list[float]]:
    """Return the lengths of error bars below and above; an interval may lie beside its estimate, a length may not."""
    below = [max(0.0, centre - low) for centre, (low, _) in zip(centres, reach, strict=True)]
    above = [max(0.0, high - centre) for centre, (_, high) in zip(centres, reach, strict=True)]
    return [below, above]


def _in_words(iteration: IterationReport) -> str:
    seen, candidate = iteration.baseline, iteration.candidate
    told = f"iteration {iteration.number}: {seen.solved} of {seen.tasks} solved"
    if candidate is None:
        return told
    moved = "" if candidate.effect is None else f" at {points(candidate.effect)} points"
    return f"{told}, candidate {decision(candidate.decision)}{moved}"


def _look_in_words(look: LookReport) -> str:
    found = look.evaluation
    assert found is not None
    arms = (f"{arm.successes} of {arm.n}" for arm in (found.base, found.frozen))
    return f"{look.look.frozen_name}, look {look.look.number}: " + " without and ".join(arms) + " with the harness"
