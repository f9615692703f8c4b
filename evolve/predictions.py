"""What a proposal predicted against what its candidate did, task by task.

Pure. Give it training tasks only: its result is shown to the next proposer, which may not learn of guard tasks.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pydantic import Field

from evolve.records import Proposal, Record

CHANGED = 0.5
"""A task counts as fixed or broken when its rate of success moved by at least this much."""


class PredictionScore(Record):
    """How well a proposal foresaw its own effect. Rates are None where there is nothing to divide by."""

    fixed_predicted: tuple[str, ...] = Field(description="measured tasks that were to be fixed, sorted")
    fixed_really: tuple[str, ...] = Field(description="tasks whose rate of success rose by half or more")
    fixed_hits: tuple[str, ...] = Field(description="predicted and fixed")
    fixed_false: tuple[str, ...] = Field(description="predicted, not fixed")
    broken_predicted: tuple[str, ...] = Field(description="measured tasks named at risk")
    broken_really: tuple[str, ...] = Field(description="tasks whose rate of success fell by half or more")
    broken_hits: tuple[str, ...] = Field(description="named at risk and broken")
    unmeasured: tuple[str, ...] = Field(description="named in the proposal, but not among the measured tasks")
    fixed_precision: float | None = Field(description="share of the predicted fixes that came true")
    fixed_recall: float | None = Field(description="share of the real fixes that were predicted")
    broken_recall: float | None = Field(description="share of the broken tasks that were named at risk")


def score_predictions(
    proposal: Proposal, incumbent: Mapping[str, float], candidate: Mapping[str, float]
) -> PredictionScore:
    """Compare a proposal's predictions with the outcomes of both arms.

    Args:
        proposal: what was said before anything was measured.
        incumbent: rate of success in [0, 1] per training task without the patch.
        candidate: the same with the patch. Tasks measured in one arm only are left out.
    """
    gain = {task: candidate[task] - incumbent[task] for task in incumbent.keys() & candidate.keys()}
    predicted, at_risk = set(proposal.predicts_fixed), set(proposal.at_risk)
    fixed = {task for task, change in gain.items() if change >= CHANGED}
    broken = {task for task, change in gain.items() if change <= -CHANGED}
    to_fix, to_break = predicted & gain.keys(), at_risk & gain.keys()
    return PredictionScore(
        fixed_predicted=_sorted(to_fix),
        fixed_really=_sorted(fixed),
        fixed_hits=_sorted(to_fix & fixed),
        fixed_false=_sorted(to_fix - fixed),
        broken_predicted=_sorted(to_break),
        broken_really=_sorted(broken),
        broken_hits=_sorted(to_break & broken),
        unmeasured=_sorted((predicted | at_risk) - gain.keys()),
        fixed_precision=_share(to_fix & fixed, to_fix),
        fixed_recall=_share(to_fix & fixed, fixed),
        broken_recall=_share(to_break & broken, broken),
    )


def _sorted(tasks: Collection[str]) -> tuple[str, ...]:
    return tuple(sorted(tasks))


def _share(part: Collection[str], whole: Collection[str]) -> float | None:
    return len(part) / len(whole) if whole else None
