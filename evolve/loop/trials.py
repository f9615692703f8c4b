"""The stages that play episodes: screen, paired test, guards, confirmation. They ask the pure gate what scores mean."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import Literal

from evolve.gate.costs import ArmCost, cost, fault_rate
from evolve.gate.guards import GUARD_TRIALS, GuardDecision, carry_over, once_fixed, regression
from evolve.gate.scores import PairedScores
from evolve.gate.sequential import SequentialPairedTest
from evolve.loop.exam import Exam, passed, rejected
from evolve.predictions import score_predictions
from evolve.records import Decision, Episode, Json, StageResult, Task
from evolve.store import Purpose

CONFIRMATION_TRIAL = 1000
"""Trials from here on serve confirmation alone, so that they are fresh for both arms."""
CONFIRMATION_TRIALS = 2


async def screen(exam: Exam) -> StageResult:
    """Play the targeted failing tasks and some passing sentries once; reject what does not help, or hurts more."""
    targets, sentries = await _screened(exam)
    if not targets:
        return passed("screen", "None of the tasks that the proposal targets fails now; there is nothing to screen.")
    trial = [exam.fresh_trial]
    await exam.play(dict.fromkeys([*targets, *sentries], trial), Purpose.SCREEN)
    aimed, kept = (exam.scores(dict.fromkeys(tasks, trial)) for tasks in (targets, sentries))
    numbers = {
        "targets": len(targets),
        "sentries": len(sentries),
        "target_gain": round(aimed.effect, 4),
        "sentry_gain": round(kept.effect, 4),
        "unchanged": sum(_is_unchanged(exam, task) for task in targets),
    }
    net = sum(aimed.differences.values()) + sum(kept.differences.values())
    told = (
        f"{len(targets)} targeted tasks moved by {100 * aimed.effect:+.1f} points per task, "
        f"{len(sentries)} passing ones by {100 * kept.effect:+.1f}"
    )
    if numbers["unchanged"] == len(targets):
        return rejected("screen", "The patch changes no request and no step on any task that it targets.", **numbers)
    if net < 0 or (exam.run.model.is_greedy and net <= 0):
        return rejected("screen", f"{told}: no gain to be tested.", **numbers)
    return passed("screen", f"{told}.", **numbers)


async def paired_test(exam: Exam) -> StageResult:
    """Play both arms on the training tasks in stages of growing trials until the test has decided."""
    rule = SequentialPairedTest(max_trials=1 if exam.run.model.is_greedy else exam.run.config.gate.max_trials)
    counts = dict.fromkeys(exam.run.train(), rule.stages[0])
    for number in range(len(rule.stages)):
        trials = {task: range(exam.fresh_trial, exam.fresh_trial + count) for task, count in counts.items()}
        await exam.play(trials, Purpose.PAIRED_TEST)
        scores = exam.scores(trials)
        exam.note_effect(scores)
        decision = rule.decide(scores, number, exam.alpha)
        if decision.outcome != "continue":
            break
        added = rule.allocate(scores, number)
        counts = {task: count + added.get(task.task_id, 0) for task, count in counts.items()}
    exam.tested = trials
    return StageResult(
        stage="paired_test",
        outcome="pass" if decision.outcome == "accept" else decision.outcome,
        reasons=decision.reasons,
        numbers={
            **decision.numbers,
            **_divergence(exam),
            "per_task": _per_task(scores),
            "predictions": _foresight(exam, scores),
        },
    )


async def guards(exam: Exam) -> StageResult:
    """Ask whether the gain carries over to the guard tasks, and whether anything else got worse."""
    count = 1 if exam.run.model.is_greedy else min(GUARD_TRIALS, exam.run.config.gate.max_trials)
    held = dict.fromkeys(exam.run.guard(), range(exam.fresh_trial, exam.fresh_trial + count))
    exam.run.ledger.record_guard_use(exam.candidate.candidate_id, "guards")
    await exam.play(held, Purpose.PAIRED_TEST)
    train, both = exam.scores(exam.tested), exam.scores({**exam.tested, **held})
    decisions = {
        "carry_over": carry_over(both, train_gain=train.effect),
        "regression": regression(both),
        "once_fixed": once_fixed(both, _suite(exam)),
        "cost": _cost(exam, gain=both.effect),
        "fault_rate": _fault_rate(exam),
    }
    numbers: Json = {name: decision.numbers for name, decision in decisions.items()}
    numbers["guard_uses"] = exam.run.ledger.guard_uses(exam.run.name)
    return StageResult(
        stage="guards",
        outcome=_worst(decisions.values()),
        reasons=tuple(reason for decision in _telling(decisions.values()) for reason in decision.reasons),
        numbers=numbers,
    )


async def confirmation(exam: Exam) -> StageResult:
    """Measure the gain once more on trials that nothing was chosen by; it is the estimate that is reported."""
    if exam.run.model.is_greedy:
        reason = "The model is greedy: a fresh trial would repeat the one there is. The guard tasks stand for it."
        return StageResult(stage="confirmation", outcome="accept", reasons=(reason,))
    first = CONFIRMATION_TRIAL * exam.candidate.number
    trials = dict.fromkeys(exam.run.train(), range(first, first + CONFIRMATION_TRIALS))
    await exam.play(trials, Purpose.CONFIRMATION)
    scores = exam.scores(trials)
    exam.note_effect(scores)
    outcome: Literal["accept", "cannot_tell"] = "accept" if scores.effect > 0 else "cannot_tell"
    told = f"On {scores.pairs} fresh pairs the candidate moved by {100 * scores.effect:+.1f} points per task"
    reason = f"{told}." if outcome == "accept" else f"{told}: the gain does not show again."
    return StageResult(stage="confirmation", outcome=outcome, reasons=(reason,), numbers={"effect": exam.effect})


async def _screened(exam: Exam) -> tuple[list[Task], list[Task]]:
    """Return failing tasks that the candidate targets and passing tasks as sentries, spread over the list."""
    settings = exam.run.config.gate
    solved = {e.task_id for e in await exam.recorded_training_episodes() if e.is_success}
    tasks = exam.run.train()
    wanted = set(exam.candidate.proposal.predicts_fixed) or exam.pattern_tasks
    failing = [task for task in tasks if task.task_id in wanted and task.task_id not in solved]
    passing = [task for task in tasks if task.task_id in solved]
    return _spread(failing, settings.screen_tasks), _spread(passing, settings.screen_sentries)


def _spread(tasks: Sequence[Task], count: int) -> list[Task]:
    """Return up to `count` tasks, evenly spaced."""
    if len(tasks) <= count:
        return list(tasks)
    return [tasks[i * len(tasks) // count] for i in range(count)]


def _is_unchanged(exam: Exam, task: Task) -> bool:
    """Tell whether the candidate's episode is the incumbent's, step by step."""
    key = (task.task_id, exam.fresh_trial)
    old, new = exam.old[key], exam.new[key]
    return [s.request for s in old.steps] == [s.request for s in new.steps] and [s.executed for s in old.steps] == [
        s.executed for s in new.steps
    ]


def _divergence(exam: Exam) -> Json:
    """Count what the candidate's episodes shared with what was asked before."""
    episodes = exam.candidate_episodes
    asked = sum(e.requests_asked for e in episodes)
    requests = sum(e.requests for e in episodes)
    return {
        "episodes": len(episodes),
        "episodes_diverged": sum(e.requests_asked > 0 for e in episodes),
        "requests": requests,
        "requests_asked": asked,
        "asked_share": round(asked / requests, 4) if requests else 0.0,
    }


def _suite(exam: Exam) -> set[str]:
    """Return the training tasks that candidates accepted before, in all runs, really fixed."""
    verdicts = (e.verdict for e in exam.run.ledger.candidates() if e.candidate.environment == exam.run.name)
    accepted = (v for v in verdicts if v is not None and v.decision is Decision.ACCEPT)
    scored = (stage.numbers.get("predictions", {}) for verdict in accepted for stage in verdict.stages)
    return {task for numbers in scored for task in numbers.get("fixed_really", ())}


def _foresight(exam: Exam, scores: PairedScores) -> Json:
    """Return how the proposal's predictions came out on the training tasks."""
    rates = {
        task.task_id: (fmean(old for old, _ in task.pairs), fmean(new for _, new in task.pairs))
        for task in scores.tasks
        if task.pairs
    }
    old, new = ({task: both[arm] for task, both in rates.items()} for arm in (0, 1))
    return score_predictions(exam.candidate.proposal, old, new).model_dump(mode="json")


def _per_task(scores: PairedScores) -> Json:
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


def _cost(exam: Exam, *, gain: float) -> GuardDecision:
    keys = exam.old.keys() & exam.new.keys()
    old, new = ([arm[key] for key in sorted(keys)] for arm in (exam.old, exam.new))
    mean_score = fmean(e.score.value for e in old if e.score) if any(e.score for e in old) else 0.0
    decision = cost(_arm_cost(old), _arm_cost(new), gain=gain, mean_score=mean_score)
    # wall time depends on the machine's other work: it is in the report, not in evidence that is digested
    numbers = {
        key: ("unbounded" if value == math.inf else value) for key, value in decision.numbers.items() if key != "wall_s"
    }
    return GuardDecision(decision.outcome, decision.reasons, numbers)


def _arm_cost(episodes: Sequence[Episode]) -> ArmCost:
    solved = [e for e in episodes if e.is_success]
    if not solved:
        return ArmCost(solved=0, tokens=0.0, steps=0.0, wall_s=0.0)
    return ArmCost(
        solved=len(solved),
        tokens=fmean(e.usage.prompt_tokens + e.usage.completion_tokens for e in solved),
        steps=fmean(len(e.steps) for e in solved),
        wall_s=0.0,
    )


def _fault_rate(exam: Exam) -> GuardDecision:
    keys = exam.old.keys() & exam.new.keys()
    return fault_rate(
        incumbent_faulty=sum(bool(exam.old[key].faults) for key in keys),
        candidate_faulty=sum(bool(exam.new[key].faults) for key in keys),
        episodes=len(keys),
    )


def _worst(decisions: Iterable[GuardDecision]) -> Literal["pass", "reject", "cannot_tell"]:
    outcomes = {decision.outcome for decision in decisions}
    if "veto" in outcomes:
        return "reject"
    return "cannot_tell" if "cannot_tell" in outcomes else "pass"


def _telling(decisions: Iterable[GuardDecision]) -> list[GuardDecision]:
    """Return the decisions that explain the outcome: those against the candidate, or else all."""
    everything = list(decisions)
    return [decision for decision in everything if decision.outcome != "pass"] or everything
