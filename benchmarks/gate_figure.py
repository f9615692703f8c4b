"""Draws the figure of docs/gate.md: error and power of our policies and of the common rules.

    evolve selftest --json | python benchmarks/gate_figure.py

Our policies and the common rules at the self-test's number of trials come from the self-test; the lines of the common
rules at 1 to 8 trials come from benchmarks/gate_frontier.json. It measures nothing itself; equal input, equal file.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

OURS = ("standard", "strict")
INK, OUR_COLOUR, GRID = "#1b1f24", "#1f5fbf", "#d9dde3"
THEIR_COLOURS = ("#c2410c", "#8a6100", "#a8458f", "#0a7f5a", "#7a8594")
OUR_LABELS = {"standard": (-8, 7), "strict": (-8, -28)}
TRIALS = "small figures: trials per task and arm;\nours: on average, if worthless / if worth +10"
FRONTIER = Path(__file__).with_name("gate_frontier.json")


def figure_of(report: dict[str, Any], frontier: dict[str, Any]) -> Figure:
    """Return the figure: power for ten points over the chance of a false accept in a row of worthless candidates."""
    setup, rules = report["setup"], report["rules"]
    figure = Figure(figsize=(7.2, 4.4), layout="constrained")
    axes = figure.subplots()
    theirs = (name for name in rules if name not in OURS)
    for name, colour in zip(theirs, THEIR_COLOURS, strict=True):
        _line(axes, name, colour, [point for point in frontier["common_rules"] if point["rule"] == name])
    for name in OURS:
        found = rules[name]
        at = 100 * found[f"false_accept_in_{setup['candidates']}"], 100 * found["power_10"]
        cost = f"{found['trials_per_task_null']:.1f} / {found['trials_per_task_good']:.1f}"
        axes.scatter(*at, s=80, color=OUR_COLOUR, zorder=4)
        label, shift = f"{name}\n{cost}", OUR_LABELS[name]
        axes.annotate(label, at, xytext=shift, textcoords="offset points", color=OUR_COLOUR, fontsize=8)
    axes.set(
        xlabel=f"at least one false accept in {setup['candidates']} worthless candidates (%)",
        ylabel="a candidate worth +10 points is accepted (%)",
        xlim=(-3, 103),
        ylim=(0, 112),
        yticks=range(0, 101, 20),
    )
    axes.grid(color=GRID)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="lower right", fontsize=9, frameon=False, title=TRIALS, title_fontsize=8)
    return figure


def _line(axes: Axes, name: str, colour: str, points: list[dict[str, Any]]) -> None:
    """Draw a rule over its numbers of trials, each written beside its mark."""
    errors, powers = ([100 * point[key] for point in points] for key in ("false_accept_in_10", "power_10"))
    axes.plot(errors, powers, color=colour, marker="o", ms=4, lw=1.2, label=name, zorder=2)
    for point, error, power in zip(points, errors, powers, strict=True):
        axes.annotate(
            str(point["trials"]), (error, power), xytext=(4, -8), textcoords="offset points", color=colour, fontsize=7
        )


def main() -> None:
    """Read a report from standard input and write the figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("docs/gate.svg"))
    args = parser.parse_args()
    matplotlib.rcParams.update({"svg.hashsalt": "evolve", "svg.fonttype": "none", "text.color": INK})
    figure = figure_of(json.load(sys.stdin), json.loads(FRONTIER.read_text()))
    figure.savefig(args.out, metadata={"Date": None, "Creator": None})


if __name__ == "__main__":
    main()
