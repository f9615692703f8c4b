"""Measure the frontier on which the design of the sequential test was chosen, and write it as one JSON document.

    python benchmarks/gate_frontier.py --out benchmarks/gate_frontier.json

For each design: error of a worthless candidate and trials it takes, and power for +5, +10 and +15 points under three
ways in which a gain can be spread over tasks (`shifted`, `raised`, `mended` of evolve.gate.simulate). Beside it the
common rules with more and more trials, and the chosen design on other mixes of tasks than it was tuned on.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from evolve.gate.budget import ErrorBudget, Policy
from evolve.gate.rules import COMMON_RULES
from evolve.gate.sequential import Design, SequentialPairedTest
from evolve.gate.simulate import Effect, Floats, mended, pass_rates, play, raised, shifted, tape

ALPHA = ErrorBudget(Policy.STANDARD).next_alpha
CHOSEN = Design()
DESIGNS = {
    "chosen": CHOSEN,
    "nothing rests": replace(CHOSEN, rest_after=0),
    "rest after 1": replace(CHOSEN, rest_after=1),
    "rest after 2": replace(CHOSEN, rest_after=2),
    "rest after 4": replace(CHOSEN, rest_after=4),
    "spending like Pocock (shape 0.8)": replace(CHOSEN, shape=0.8),
    "spending like O'Brien-Fleming (shape 3)": replace(CHOSEN, shape=3.0),
    "no futility stop": replace(CHOSEN, futile_start=-9.0, futile_end=-8.9),
    "futility earlier": replace(CHOSEN, futile_start=-0.2),
    "futility later": replace(CHOSEN, futile_start=-1.0),
    "futility rising evenly": replace(CHOSEN, futile_curve=1.0),
    "stages 1/2/4/8/16": replace(CHOSEN, stages=(1, 2, 4, 8, 16)),
    "stages 1/2/4/8/16/24": replace(CHOSEN, stages=(1, 2, 4, 8, 16, 24)),
    "stages 1/2/3/4/6/8/12/16": replace(CHOSEN, stages=CHOSEN.stages[:-1]),
    "stages to 36": replace(CHOSEN, stages=(*CHOSEN.stages, 36)),
    "one stage of 4": replace(CHOSEN, stages=(4,)),
    "one stage of 8": replace(CHOSEN, stages=(8,)),
}
EFFECTS: dict[str, Effect] = {"shifted": shifted, "raised": raised, "mended": mended}
GAINS = (0.05, 0.10, 0.15)
NULLS = 4


def measure(design: Design, rates: Floats, seed: int) -> dict[str, Any]:
    """Return error, power and cost of one design; all designs meet the same draws."""
    rng, test = np.random.default_rng(seed), SequentialPairedTest(design=design)
    length = 36
    incumbent = tape(rng, rates, length)
    nulls = [play(test, incumbent, tape(rng, rates, length), ALPHA) for _ in range(NULLS)]
    point: dict[str, Any] = {
        "design": asdict(design),
        "false_accept": float(np.mean([played.accepted.mean() for played in nulls])),
        "trials_null": float(np.mean([played.trials.mean() for played in nulls])),
    }
    for name, effect in EFFECTS.items():
        played = [play(test, incumbent, tape(rng, effect(rates, gain, rng), length), ALPHA) for gain in GAINS]
        point[name] = {
            **{f"power_{round(100 * g)}": float(p.accepted.mean()) for g, p in zip(GAINS, played, strict=True)},
            "trials_good": float(played[1].trials.mean()),
        }
    return point


def common(rates: Floats, seed: int) -> list[dict[str, Any]]:
    """Return each common rule at 1 to 8 trials per task: error in ten worthless candidates, and power."""
    points = []
    for trials in (1, 2, 3, 4, 6, 8):
        rng = np.random.default_rng(seed)
        old = tape(rng, rates, trials).mean(axis=2)
        nulls = [tape(rng, rates, trials).mean(axis=2) - old for _ in range(10)]
        gains = [tape(rng, shifted(rates, gain, rng), trials).mean(axis=2) - old for gain in GAINS]
        for name, rule in COMMON_RULES.items():
            accepted = np.array([rule(null) for null in nulls])
            points.append(
                {
                    "rule": name,
                    "trials": trials,
                    "false_accept": float(accepted.mean()),
                    "false_accept_in_10": float(accepted.any(axis=0).mean()),
                    **{f"power_{round(100 * g)}": float(rule(d).mean()) for g, d in zip(GAINS, gains, strict=True)},
                }
            )
    return points


def mixes(rng: np.random.Generator, runs: int) -> dict[str, Floats]:
    """Return pass rates of other sets of tasks than the one that the design was tuned on."""
    return {
        "20 tasks": pass_rates(rng, runs, 20),
        "40 tasks": pass_rates(rng, runs, 40),
        "89 tasks": pass_rates(rng, runs, 89),
        "40 tasks, all of .2 to .8": rng.uniform(0.2, 0.8, (runs, 40)),
        "40 tasks, all of .95": np.full((runs, 40), 0.95),
        "40 tasks, half never solved": np.where(np.arange(40) < 20, 0.001, rng.uniform(0.2, 0.8, (runs, 40))),
    }


def robustness(runs: int, seed: int) -> list[dict[str, Any]]:
    """Return the error of the chosen design off its tuning: other tasks, fewer trials, gains and losses that cancel."""
    rng, points = np.random.default_rng(seed), []
    for name, rates in mixes(rng, runs).items():
        for max_trials in (1, 2, 4, 24):
            test = SequentialPairedTest(max_trials=max_trials)
            arms = tape(rng, rates, max_trials), tape(rng, rates, max_trials)
            share = float(play(test, *arms, ALPHA).accepted.mean())
            points.append({"mix": name, "max_trials": max_trials, "false_accept": share})
    rates = pass_rates(rng, runs, 40)
    moved = cancelling(rates, rng)
    arms = tape(rng, rates, 24), tape(rng, moved, 24)
    accepted = play(SequentialPairedTest(), *arms, ALPHA).accepted
    points.append({"mix": "40 tasks, +-.2 that cancel", "max_trials": 24, "false_accept": float(accepted.mean())})
    return points


def cancelling(rates: Floats, rng: np.random.Generator) -> Floats:
    """Raise half of the tasks between .2 and .8 by .2 and lower the other half by .2: no mean gain on these tasks."""
    signs = np.zeros(rates.shape)
    is_middle = (rates >= 0.2) & (rates <= 0.8)
    for row, middle in zip(signs, is_middle, strict=True):
        where = rng.permutation(np.flatnonzero(middle))
        row[where] = np.where(np.arange(len(where)) < len(where) // 2, 0.2, -0.2)
    return rates + signs


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10_000, help="simulated runs per figure")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/gate_frontier.json"))
    args = parser.parse_args()
    rates = pass_rates(np.random.default_rng(args.seed), args.runs, 40)
    document = {
        "schema_version": 1,
        "command": f"python benchmarks/gate_frontier.py --runs {args.runs} --seed {args.seed}",
        "alpha": ALPHA,
        "designs": {name: measure(design, rates, args.seed) for name, design in DESIGNS.items()},
        "common_rules": common(rates, args.seed),
        "robustness": robustness(args.runs, args.seed),
    }
    args.out.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
