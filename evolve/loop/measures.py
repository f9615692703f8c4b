"""What the episodes of an examination amount to, beside the test: reuse, tables, foresight, cost. Decides nothing."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean

from evolve.gate.costs import ArmCost, cost, fault_rate
from evolve.gate.guards import GuardDecision
from evolve.gate.scores import PairedScores
from evolve.loop.exam import Exam
from evolve.predictions import PredictionScore, score_predictions
from evolve.records import Decision, Episode, Json, Task, Usage, Verdict


def is_unchanged(exam: Exam, task: Task) -> bool:
    """Tell whether the candidate's first fresh episode is the incumbent's, step by step."""
    key = (task.task_id, exam.fresh_trial)
    old, new = exam.old[key], exam.new[key]
    return [s.request for s in old.steps] == [s.request for s in new.steps] and [s.executed for s in old.steps] == [
        s.executed for s in new.steps
    ]


def divergence(exam: Exam) -> Json:
    """Count what the candidate's episodes so far shared with what was asked before.

    A full re-run would ask `requests` and use `tokens`; `requests_asked` and `tokens_asked` are what it took.
    """
    episodes = exam.candidate_episodes
    requests, asked = sum(e.requests for e in episodes), sum(e.requests_asked for e in episodes)
    return {
        "episodes": len(episodes),
        "episodes_diverged": sum(e.requests_asked > 0 for e in episodes),
        "requests": requests,
        "requests_asked": asked,
        "asked_share": round(asked / requests, 4) if requests else 0.0,
        "tokens": sum(_tokens(e.usage) for e in episodes),
        "tokens_asked": sum(_tokens(e.usage_asked) for e in episodes),
    }


def per_task(scores: PairedScores) -> Json:
    """Return the per-task table: mean score of the incumbent and of the candidate, and the number of pairs."""
    return {
        task.task_id: [
            round(fmean(old for old, _ in task.pairs), 4),
            round(fmean(new for _, new in task.pairs), 4),
            len(task.pairs),
        ]
        for task in scores.tasks
        if task.pairs
    }


def foresight(exam: Exam, scores: PairedScores) -> Json:
    """Return how the proposal's predictions came out on the training tasks."""
    rows = per_task(scores)
    old, new = ({task: row[arm] for task, row in rows.items()} for arm in (0, 1))
    return score_predictions(exam.candidate.proposal, old, new).model_dump(mode="json")


def came_true(verdict: Verdict) -> dict[str, bool]:
    """Return, by task, whether what the proposal predicted of it happened; nothing where nothing was measured."""
    scored = next((stage.numbers["predictions"] for stage in verdict.stages if "predictions" in stage.numbers), None)
    if scored is None:
        return {}
    found = PredictionScore.model_validate(scored)
    return {
        **{task: task in found.fixed_hits for task in found.fixed_predicted},
        **{task: task in found.broken_hits for task in found.broken_predicted},
    }


def suite(exam: Exam) -> set[str]:
    """Return the training tasks that candidates accepted before, in all runs, really fixed."""
    verdicts = (e.verdict for e in exam.run.ledger.candidates() if e.candidate.environment == exam.run.name)
    accepted = (v for v in verdicts if v is not None and v.decision is Decision.ACCEPT)
    scored = (stage.numbers.get("predictions", {}) for verdict in accepted for stage in verdict.stages)
    return {task for numbers in scored for task in numbers.get("fixed_really", ())}


def tokens_per_episode(exam: Exam) -> Mapping[str, float]:
    """Return the mean tokens of an episode of each arm, over the pairs that were played."""
    old, new = _paired(exam)
    arms = {"incumbent": old, "candidate": new}
    return {name: round(fmean(_tokens(e.usage) for e in arm), 2) if arm else 0.0 for name, arm in arms.items()}


def cost_guard(exam: Exam, *, gain: float) -> GuardDecision:
    """Ask whether solved episodes became too dear for the gain."""
    old, new = _paired(exam)
    mean_score = fmean(e.score.value for e in old if e.score) if any(e.score for e in old) else 0.0
    decision = cost(_arm_cost(old), _arm_cost(new), gain=gain, mean_score=mean_score)
    # wall time depends on the machine's other work: it is in the report, not in evidence that is digested
    numbers = {
        key: ("unbounded" if value == math.inf else value) for key, value in decision.numbers.items() if key != "wall_s"
    }
    return GuardDecision(decision.outcome, decision.reasons, numbers)


def fault_guard(exam: Exam) -> GuardDecision:
    """Ask whether rules misbehave in more episodes than before."""
    old, new = _paired(exam)
    return fault_rate(
        incumbent_faulty=sum(bool(e.faults) for e in old),
        candidate_faulty=sum(bool(e.faults) for e in new),
        episodes=len(old),
    )


def _paired(exam: Exam) -> tuple[list[Episode], list[Episode]]:
    keys = sorted(exam.old.keys() & exam.new.keys())
    return [exam.old[key] for key in keys], [exam.new[key] for key in keys]


def _arm_cost(episodes: Sequence[Episode]) -> ArmCost:
    solved = [e for e in episodes if e.is_success]
    if not solved:
        return ArmCost(solved=0, tokens=0.0, steps=0.0, wall_s=0.0)
    return ArmCost(
        solved=len(solved),
        tokens=fmean(_tokens(e.usage) for e in solved),
        steps=fmean(len(e.steps) for e in solved),
        wall_s=0.0,
    )


def _tokens(usage: Usage) -> int:
    return usage.prompt_tokens + usage.completion_tokens
