"""The gate proves itself on known answers: false accepts, power and cost of our policies beside the common rules."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from evolve.gate.budget import ErrorBudget, Policy
from evolve.gate.rules import COMMON_RULES
from evolve.gate.scenarios import scenarios
from evolve.gate.sequential import FEWEST_TASKS, SequentialPairedTest
from evolve.gate.simulate import Bools, Floats, pass_rates, play, shifted, tape
from evolve.records import Json

SCHEMA_VERSION = 1
RUNS = 4000
GAINS = (0.05, 0.10, 0.15)


@dataclass(frozen=True, slots=True)
class Setup:
    """What is simulated. `trials` are those of the common rules; ours decides itself how many it needs."""

    tasks: int = 40
    trials: int = 2
    candidates: int = 10
    seed: int = 1
    runs: int = RUNS


Judged = tuple[Bools, Floats]
Judge = Callable[[Bools, Bools, int], Judged]


def selftest(
    tasks: int = 40, trials: int = 2, candidates: int = 10, seed: int = 1, *, runs: int = RUNS, full: bool = True
) -> Json:
    """Run the self-test and return its report as JSON.

    Tasks are as `pass_rates` draws them; a true gain shifts the log-odds of all tasks alike; all candidates of a run
    meet the same recorded trials of the incumbent. Power is that of the first candidate, and of the tenth too: the
    first ten spend the same alpha. Below 20 tasks the gate never accepts by itself (`is_accepting` in the set-up is
    false) and the figures are those of the test alone.

    Args:
        tasks: number of training tasks.
        trials: trials per task and arm of the common rules.
        candidates: worthless candidates in a row for the run-wide false-accept rate.
        seed: seed of all draws.
        runs: simulated runs; the standard error of a share s is sqrt(s (1 - s) / runs).
        full: also play the scenarios of the whole gate (exploits, regressions, voids, drift).
    """
    began = time.monotonic()
    setup = Setup(tasks, trials, candidates, seed, runs)
    judges = _judges(setup)
    rng = np.random.default_rng(seed)
    rates = pass_rates(rng, runs, tasks)
    length = max(SequentialPairedTest().stages[-1], trials)
    incumbent = tape(rng, rates, length)
    report = _nulls(judges, rng, rates, incumbent, candidates)
    for gain in GAINS:
        _powers(judges, report, incumbent, tape(rng, shifted(rates, gain, rng), length), gain)
    return {
        "schema_version": SCHEMA_VERSION,
        "setup": _described(setup),
        "rules": report,
        **({"scenarios": scenarios(tasks, seed)} if full else {}),
        "wall_s": round(time.monotonic() - began, 2),
    }


def alphas(policy: Policy, candidates: int) -> tuple[float, ...]:
    """Return the false-accept rate of each candidate of a run in which nothing is accepted."""
    budget, spent = ErrorBudget(policy), []
    for _ in range(candidates):
        spent.append(budget.next_alpha)
        budget = budget.after(is_accepted=False)
    return tuple(spent)


def _judges(setup: Setup) -> Mapping[str, Judge]:
    """Return each rule as a function of (incumbent, candidate, number of the candidate from 0)."""
    ours = {str(policy): _ours(alphas(policy, setup.candidates)) for policy in (Policy.STANDARD, Policy.STRICT)}
    return {**ours, **{name: _common(name, setup.trials) for name in COMMON_RULES}}


def _ours(spent: tuple[float, ...]) -> Judge:
    def judge(incumbent: Bools, candidate: Bools, number: int) -> Judged:
        played = play(SequentialPairedTest(), incumbent, candidate, spent[number])
        return played.accepted, played.trials

    return judge


def _common(name: str, trials: int) -> Judge:
    def judge(incumbent: Bools, candidate: Bools, number: int) -> Judged:
        means = (arm[:, :, :trials].mean(axis=2) for arm in (candidate, incumbent))
        new, old = means
        return COMMON_RULES[name](new - old), np.full(len(new), float(trials))

    return judge


def _nulls(
    judges: Mapping[str, Judge], rng: np.random.Generator, rates: Floats, incumbent: Bools, candidates: int
) -> dict[str, Json]:
    accepted = {name: np.zeros((candidates, len(rates)), dtype=bool) for name in judges}
    trials = dict.fromkeys(judges, 0.0)
    for number in range(candidates):
        candidate = tape(rng, rates, incumbent.shape[2])
        for name, judge in judges.items():
            accepted[name][number], spent = judge(incumbent, candidate, number)
            trials[name] += float(spent.mean()) / candidates
    return {
        name: {
            "false_accept_per_candidate": float(accepted[name].mean()),
            f"false_accept_in_{candidates}": float(accepted[name].any(axis=0).mean()),
            "trials_per_task_null": trials[name],
        }
        for name in judges
    }


def _powers(
    judges: Mapping[str, Judge], report: dict[str, Json], incumbent: Bools, candidate: Bools, gain: float
) -> None:
    for name, judge in judges.items():
        accepted, spent = judge(incumbent, candidate, 0)
        report[name][f"power_{round(100 * gain)}"] = float(accepted.mean())
        if gain == 0.10:
            report[name]["trials_per_task_good"] = float(spent.mean())


def _described(setup: Setup) -> Json:
    return {
        "tasks": setup.tasks,
        "trials": setup.trials,
        "candidates": setup.candidates,
        "is_accepting": setup.tasks >= FEWEST_TASKS,
        "seed": setup.seed,
        "runs": setup.runs,
        "pass_rates": "40% of tasks .95, 20% .05, the rest uniform from .2 to .8",
        "gain": "one shift of the log-odds of all tasks; good means +10 points",
        "stages": list(SequentialPairedTest().stages),
        "alphas": {str(p): list(alphas(p, setup.candidates)) for p in (Policy.STANDARD, Policy.STRICT)},
    }
