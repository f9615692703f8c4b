"""What a candidate costs beside its score: tokens, steps, time, and rules that misbehave."""

from __future__ import annotations

import math
from dataclasses import dataclass

from evolve.figures import percent
from evolve.gate.guards import GuardDecision
from evolve.records import Json

COST_LIMIT = 1.25
FAULT_LIMIT = 0.02


@dataclass(frozen=True, slots=True)
class ArmCost:
    """What the solved episodes of one arm cost on average. 0 solved: there is nothing to compare."""

    solved: int
    tokens: float
    steps: float
    wall_s: float


def cost(incumbent: ArmCost, candidate: ArmCost, *, gain: float, mean_score: float) -> GuardDecision:
    """Veto a candidate whose solved episodes cost over 1.25 times the incumbent's, unless it gains in kind.

    A candidate that is dearer by a factor r passes if its gain raises the score by that factor too: tokens per point
    of score do not rise. Wall time is reported and never vetoes: it depends on the machine's other work.

    Args:
        incumbent: costs of its solved episodes, on the same tasks and trials.
        candidate: the same for the candidate.
        gain: mean gain of the candidate in score points per task.
        mean_score: mean score of the incumbent.
    """
    if not incumbent.solved or not candidate.solved:
        return GuardDecision("pass", ("One arm solved nothing, so costs of solved episodes cannot be compared.",), {})
    ratios = {
        "tokens": _ratio(candidate.tokens, incumbent.tokens),
        "steps": _ratio(candidate.steps, incumbent.steps),
    }
    worth = 1.0 + gain / mean_score if mean_score > 0.0 else math.inf
    numbers: Json = {**ratios, "wall_s": _ratio(candidate.wall_s, incumbent.wall_s), "limit": max(COST_LIMIT, worth)}
    over = {kind: ratio for kind, ratio in ratios.items() if ratio > max(COST_LIMIT, worth)}
    told = " and ".join(f"{ratio:.2f} times the {kind}" for kind, ratio in (over or ratios).items())
    if over:
        reason = f"A solved episode takes {told}; up to {max(COST_LIMIT, worth):.2f} times is allowed for this gain."
        return GuardDecision("veto", (reason,), numbers)
    return GuardDecision("pass", (f"A solved episode takes {told}.",), numbers)


def _ratio(new: float, old: float) -> float:
    if old > 0.0:
        return new / old
    return 1.0 if new <= 0.0 else math.inf


def fault_rate(*, incumbent_faulty: int, candidate_faulty: int, episodes: int) -> GuardDecision:
    """Veto a candidate whose rules misbehaved in over 2% more episodes than the incumbent's, and in two at least."""
    if episodes == 0:
        return GuardDecision("pass", ("No episode was run.",), {})
    rates = {"incumbent": incumbent_faulty / episodes, "candidate": candidate_faulty / episodes}
    shares = f"{percent(rates['candidate'])}, before {percent(rates['incumbent'])}"
    told = f"Rules misbehaved in {candidate_faulty} of {episodes} episodes ({shares})"
    if candidate_faulty >= 2 and rates["candidate"] > rates["incumbent"] + FAULT_LIMIT:
        return GuardDecision("veto", (f"{told}; {FAULT_LIMIT:.0%} more are borne.",), {**rates})
    return GuardDecision("pass", (f"{told}.",), {**rates})
