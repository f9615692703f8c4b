"""What the whole gate makes of candidates whose truth is known: paired test, then regression, then carry-over."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from evolve.gate.budget import ErrorBudget, Policy
from evolve.gate.guards import GUARD_TRIALS, carry_over, regression
from evolve.gate.scores import PairedScores, TaskScores
from evolve.gate.sequential import SequentialPairedTest
from evolve.gate.simulate import Bools, Floats, drive, pass_rates, play, shifted, table_of, tape
from evolve.records import Json

RUNS = 300
DRIVEN_RUNS = 40  # of scenarios that are decided one by one, because their tables have voids
GUARD_TASKS = 20
FAMILIES = 3
TEST = SequentialPairedTest()
ALPHA = ErrorBudget(Policy.STANDARD).next_alpha
NO_CHANCE = np.random.default_rng(0)  # `shifted` asks for a stream and does not use it


@dataclass(frozen=True, slots=True)
class World:
    """Tapes of both arms on training and guard tasks, runs x tasks x trials; `void_share` of pairs is lost."""

    incumbent: Bools
    candidate: Bools
    guard_incumbent: Bools
    guard_candidate: Bools
    void_share: float = 0.0


Maker = Callable[[np.random.Generator, int, int], World]
Move = Callable[[Floats], Floats]


@dataclass(frozen=True, slots=True)
class Scenario:
    """A kind of candidate and what the gate owes it."""

    world: Maker
    claim: str
    is_held: Callable[[Json], bool]


def scenarios(tasks: int, seed: int, runs: int = RUNS) -> Json:
    """Play all scenarios; return per scenario the shares of verdicts, the claim, and whether it held."""
    report: Json = {}
    for number, (name, scenario) in enumerate(SCENARIOS.items()):
        rng = np.random.default_rng((seed, number))
        shares = shares_of(scenario.world(rng, runs, tasks), rng)
        report[name] = {**shares, "claim": scenario.claim, "is_held": scenario.is_held(shares)}
    return report


def shares_of(world: World, rng: np.random.Generator) -> Json:
    """Return the share of runs per verdict of the whole gate, and the mean trials per training task and arm."""
    verdicts, trials = _driven(world, rng) if world.void_share else _played(world)
    counts = Counter(verdicts)
    shares = {name: counts[name] / len(verdicts) for name in VERDICTS}
    return {**shares, "trials_per_task": float(np.mean(trials))}


VERDICTS = ("accepted", "not_accepted", "regression_vetoed", "carry_over_vetoed", "cannot_tell")


def _played(world: World) -> tuple[list[str], Floats]:
    """Play the paired test on all runs at once, and the guards on the runs that it accepted."""
    played = play(TEST, world.incumbent, world.candidate, ALPHA)
    verdicts = ["not_accepted"] * len(played.accepted)
    for run in np.flatnonzero(played.accepted):
        seen = table_of(world.incumbent[run], world.candidate[run], families=FAMILIES, done=played.done[run])
        verdicts[run] = _guarded(seen, world, int(run))
    return verdicts, played.trials


def _driven(world: World, rng: np.random.Generator) -> tuple[list[str], Floats]:
    """Let the real test decide stage by stage on tables with voids."""
    verdicts, trials = [], []
    for run in range(min(DRIVEN_RUNS, len(world.incumbent))):
        full = table_of(world.incumbent[run], world.candidate[run], families=FAMILIES)
        holed = PairedScores(tuple(_with_voids(task, world.void_share, rng) for task in full.tasks))
        decision, seen = drive(TEST, holed, ALPHA)
        trials.append(seen.trials_per_task)
        names = {"reject": "not_accepted", "cannot_tell": "cannot_tell"}
        verdicts.append(names[decision.outcome] if decision.outcome in names else _guarded(seen, world, run))
    return verdicts, np.array(trials)


def _guarded(seen: PairedScores, world: World, run: int) -> str:
    if regression(seen).outcome != "pass":
        return "regression_vetoed"
    arms = (arm[run, :, :GUARD_TRIALS] for arm in (world.guard_incumbent, world.guard_candidate))
    guard = carry_over(table_of(*arms, fold="guard"), train_gain=seen.effect)
    return "accepted" if guard.outcome == "pass" else "carry_over_vetoed"


def _with_voids(task: TaskScores, share: float, rng: np.random.Generator) -> TaskScores:
    kept = rng.random(len(task.candidate)) >= share
    return replace(task, candidate=tuple(s if k else None for s, k in zip(task.candidate, kept, strict=True)))


def _tapes(rng: np.random.Generator, rates: Floats, move: Move, trials: int) -> tuple[Bools, Bools]:
    return tape(rng, rates, trials), tape(rng, move(rates), trials)


def _moving(train: Move, guard: Move | None = None, void_share: float = 0.0) -> Maker:
    """Return a maker of worlds in which a candidate moves the pass rates as given; families mix easy and hard."""

    def make(rng: np.random.Generator, runs: int, tasks: int) -> World:
        rates = rng.permuted(pass_rates(rng, runs, tasks), axis=1)
        others = rng.permuted(pass_rates(rng, runs, GUARD_TASKS), axis=1)
        arms = _tapes(rng, rates, train, TEST.stages[-1])
        return World(*arms, *_tapes(rng, others, guard or train, GUARD_TRIALS), void_share)

    return make


def _gain(gain: float) -> Move:
    return lambda rates: shifted(rates, gain, NO_CHANCE)


def _unchanged(rates: Floats) -> Floats:
    return rates


def _regressing(rates: Floats) -> Floats:
    """Lose 30 points on the first family and gain 30 on all others."""
    is_hurt = np.arange(rates.shape[1]) < -(-rates.shape[1] // FAMILIES)
    return np.clip(np.where(is_hurt, rates - 0.3, rates + 0.3), 0.0, 1.0)


def _losing_one_task(rates: Floats) -> Floats:
    moved = shifted(rates, 0.10, NO_CHANCE)
    moved[np.arange(len(rates)), rates.argmax(axis=1)] = 0.0
    return moved


def _identical(rng: np.random.Generator, runs: int, tasks: int) -> World:
    """A byte-identical candidate: each request is answered from the incumbent's recording."""
    world = _moving(_unchanged)(rng, runs, tasks)
    return World(world.incumbent, world.incumbent, world.guard_incumbent, world.guard_incumbent)


def _mending_failures(rng: np.random.Generator, runs: int, tasks: int) -> World:
    """A gain of 5 points from failed episodes that turn, while all others are the incumbent's own, replayed."""
    rates = rng.permuted(pass_rates(rng, runs, tasks), axis=1)
    others = rng.permuted(pass_rates(rng, runs, GUARD_TASKS), axis=1)
    return World(*_turned(rng, rates, TEST.stages[-1]), *_turned(rng, others, GUARD_TRIALS))


def _turned(rng: np.random.Generator, rates: Floats, trials: int) -> tuple[Bools, Bools]:
    incumbent = tape(rng, rates, trials)
    turning = (shifted(rates, 0.05, rng) - rates) / (1.0 - rates)
    return incumbent, incumbent | tape(rng, turning, trials)


def _mostly_replayed(rng: np.random.Generator, runs: int, tasks: int) -> World:
    """A worthless candidate that leaves 70% of the episodes as they were and draws the others anew."""
    world = _moving(_unchanged)(rng, runs, tasks)
    is_kept = rng.random(world.incumbent.shape) < 0.7
    return replace(world, candidate=np.where(is_kept, world.incumbent, world.candidate))


def _drifting(rng: np.random.Generator, runs: int, tasks: int) -> World:
    """A worthless candidate while the model gets worse from trial to trial, by 20 points in all, for both arms."""
    rates = rng.permuted(pass_rates(rng, runs, tasks), axis=1)
    last = TEST.stages[-1]
    later = [shifted(rates, -0.20 * trial / last, rng) for trial in range(last)]
    old, new = (np.concatenate([tape(rng, now, 1) for now in later], axis=2) for _ in range(2))
    return World(old, new, *_tapes(rng, rates, _unchanged, GUARD_TRIALS))


def _is_rare(shares: Json) -> bool:
    """No more false accepts than alpha and three standard errors allow."""
    return bool(shares["accepted"] <= ALPHA + 3.0 * np.sqrt(ALPHA * (1.0 - ALPHA) / RUNS))


def _is_at_least(share: float) -> Callable[[Json], bool]:
    return lambda shares: bool(shares["accepted"] >= share)


def _is_mostly_vetoed(shares: Json) -> bool:
    passed = 1.0 - shares["not_accepted"] - shares["cannot_tell"]
    return bool(shares["regression_vetoed"] >= 0.8 * passed)


SCENARIOS: Mapping[str, Scenario] = MappingProxyType(
    {
        "null": Scenario(_moving(_unchanged), "accepted no more often than alpha", _is_rare),
        "identical": Scenario(_identical, "never accepted", lambda s: s["accepted"] == 0.0),
        "+5 points": Scenario(_moving(_gain(0.05)), "accepted at least 30%, guards included", _is_at_least(0.30)),
        "+10 points": Scenario(_moving(_gain(0.10)), "accepted at least 85%, guards included", _is_at_least(0.85)),
        "+15 points": Scenario(_moving(_gain(0.15)), "accepted at least 95%, guards included", _is_at_least(0.95)),
        "+5 points, other episodes replayed": Scenario(
            _mending_failures, "accepted at least 80%, guards included", _is_at_least(0.80)
        ),
        "null, 70% replayed": Scenario(_mostly_replayed, "accepted no more often than alpha", _is_rare),
        "harmful": Scenario(
            _moving(_gain(-0.10)),
            "never accepted, in less than 2 trials per task",
            lambda s: s["accepted"] == 0.0 and s["trials_per_task"] < 2.0,
        ),
        "train-only exploit": Scenario(
            _moving(_gain(0.15), _gain(-0.02)), "accepted at most 10%", lambda s: s["accepted"] <= 0.10
        ),
        "hidden regression": Scenario(
            _moving(_regressing), "vetoed at least 80% of those that pass the test", _is_mostly_vetoed
        ),
        "one noisy task": Scenario(
            _moving(_losing_one_task, _gain(0.10)),
            "vetoed as a regression at most 2%",
            lambda s: s["regression_vetoed"] <= 0.02,
        ),
        "flaky infrastructure": Scenario(
            _moving(_gain(0.10), void_share=0.15),
            "cannot tell at least 80%, never accepted in more than 5%",
            lambda s: s["cannot_tell"] >= 0.80 and s["accepted"] <= 0.05,
        ),
        "drift": Scenario(_drifting, "accepted no more often than alpha: arms are interleaved", _is_rare),
    }
)
