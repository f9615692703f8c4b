"""The stages that play episodes: screen, paired test, guards, confirmation. They ask the pure gate what scores mean."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from evolve.figures import percent, points
from evolve.gate import guards as gate_guards
from evolve.gate.guards import GUARD_TRIALS, GuardDecision, carry_over, once_fixed, regression
from evolve.gate.scores import PairedScores
from evolve.gate.sequential import VOID_LIMIT, SequentialPairedTest
from evolve.gate.signflip import pair_p
from evolve.loop.exam import Exam, passed, rejected
from evolve.loop.measures import cost_guard, divergence, fault_guard, foresight, is_unchanged, per_task, suite
from evolve.loop.numbering import confirmation_trial
from evolve.loop.simplify import (
    CLEARLY_WORSE_P,
    may_be_simpler,
    not_worse,
    removed_units,
    shows_no_loss,
    still_not_worse,
)
from evolve.records import Json, StageResult, Task
from evolve.store import Purpose

CONFIRMATION_TRIALS = 4


async def screen(exam: Exam) -> StageResult:
    """Play the targeted failing tasks and some passing sentries once; reject what cannot help, or clearly hurts."""
    targets, sentries = await _screened(exam)
    if not targets:
        return passed("screen", "None of the tasks that the proposal targets fails now; there is nothing to screen.")
    trial = [exam.fresh_trial]
    await exam.play(dict.fromkeys([*targets, *sentries], trial), Purpose.SCREEN)
    aimed, kept, both = (exam.scores(dict.fromkeys(tasks, trial)) for tasks in (targets, sentries, targets + sentries))
    numbers = {
        "targets": len(targets),
        "sentries": len(sentries),
        "target_gain": round(aimed.effect, 4),
        "sentry_gain": round(kept.effect, 4),
        "unchanged": sum(is_unchanged(exam, task) for task in targets),
    }
    told = (
        f"{len(targets)} targeted tasks moved by {points(aimed.effect)} points per task, "
        f"{len(sentries)} passing ones by {points(kept.effect)}"
    )
    if exam.run.model.is_greedy and not await removed_units(exam):
        if numbers["unchanged"] == len(targets):
            reason = "The patch changes no request and no step on any task that it targets."
            return rejected("screen", reason, **numbers)
        if sum(both.differences.values()) <= 0:
            return rejected("screen", f"{told}: no gain to be tested.", **numbers)
    elif 1.0 - pair_p(both) <= CLEARLY_WORSE_P:
        return rejected("screen", f"{told}: clearly worse.", **numbers)
    return passed("screen", f"{told}.", **numbers)


async def paired_test(exam: Exam) -> StageResult:
    """Play both arms on the training tasks in stages of growing trials until the test has decided.

    A candidate that only takes units away, and shows no gain, is asked whether it is at least not worse.
    """
    rule = SequentialPairedTest(max_trials=1 if exam.run.model.is_greedy else exam.run.config.gate.max_trials)
    exam.alpha_spent = exam.alpha
    counts = dict.fromkeys(exam.run.train(), rule.stages[0])
    for number in range(len(rule.stages)):
        trials = {task: range(exam.fresh_trial, exam.fresh_trial + count) for task, count in counts.items()}
        await exam.play(trials, Purpose.PAIRED_TEST)
        scores = exam.scores(trials)
        decision = rule.decide(scores, number, exam.alpha)
        if decision.outcome != "continue":
            break
        added = rule.allocate(scores, number)
        counts = {task: count + added.get(task.task_id, 0) for task, count in counts.items()}
    exam.tested = trials
    outcome = "pass" if decision.outcome == "accept" else decision.outcome
    reasons, numbers = decision.reasons, dict(decision.numbers)
    if outcome != "pass" and await may_be_simpler(exam, scores):
        second, scores = await not_worse(exam, rule.stages[-1])
        outcome = "pass" if second.outcome == "pass" else outcome
        reasons, numbers["simplification"] = (*reasons, *second.reasons), second.numbers
    exam.note_effect(scores)
    return StageResult(
        stage="paired_test",
        outcome=outcome,
        reasons=reasons,
        numbers={
            **numbers,
            **divergence(exam),
            "per_task": per_task(scores),
            "predictions": foresight(exam, scores),
        },
    )


async def guards(exam: Exam) -> StageResult:
    """Ask whether the gain carries over to the guard tasks, and whether anything else got worse."""
    count = 1 if exam.run.model.is_greedy else min(GUARD_TRIALS, exam.run.config.gate.max_trials)
    held = dict.fromkeys(exam.run.guard(), range(exam.fresh_trial, exam.fresh_trial + count))
    exam.run.ledger.record_guard_use(exam.candidate.candidate_id, "guards")
    await exam.play(held, Purpose.GUARDS)
    train, both = exam.scores(exam.tested), exam.scores({**exam.tested, **held})
    carried = still_not_worse(exam, both) if exam.is_simplification else carry_over(both, train_gain=train.effect)
    voids = _voids(both.fold("guard"))
    decisions = {
        "voids": voids,
        "simplification" if exam.is_simplification else "carry_over": carried,
        "regression": regression(both),
        "once_fixed": once_fixed(both, suite(exam)),
        "cost": cost_guard(exam, gain=both.effect),
        "fault_rate": fault_guard(exam),
    }
    return StageResult(
        stage="guards",
        outcome="cannot_tell" if voids.outcome == "cannot_tell" else _worst(decisions.values()),
        reasons=tuple(reason for decision in _telling(decisions.values()) for reason in decision.reasons),
        numbers={
            **{name: decision.numbers for name, decision in decisions.items()},
            "guard_uses": exam.run.ledger.guard_uses(exam.run.name),
            **divergence(exam),
        },
    )


async def confirmation(exam: Exam) -> StageResult:
    """Measure the gain once more on trials that nothing was chosen by; it is the estimate that is reported."""
    if exam.run.model.is_greedy:
        reason = "The model is greedy: a fresh trial would repeat the one there is. The guard tasks stand for it."
        return StageResult(stage="confirmation", outcome="accept", reasons=(reason,))
    first = confirmation_trial(exam.candidate.number)
    trials = dict.fromkeys(exam.run.train(), range(first, first + CONFIRMATION_TRIALS))
    await exam.play(trials, Purpose.CONFIRMATION)
    scores, claimed = exam.scores(trials), exam.effect or 0.0
    exam.note_effect(scores)
    shown = shows_no_loss(scores) if exam.is_simplification else gate_guards.confirmation(scores, claimed=claimed)
    decisions = (_voids(scores), shown)
    return StageResult(
        stage="confirmation",
        outcome="accept" if _worst(decisions) == "pass" else "cannot_tell",
        reasons=tuple(reason for decision in _telling(decisions) for reason in decision.reasons),
        numbers={**shown.numbers, "void_share": scores.void_share, **divergence(exam)},
    )


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


def _voids(scores: PairedScores) -> GuardDecision:
    """Refuse to decide on what is left where too many pairs are void."""
    numbers: Json = {"void_share": scores.void_share}
    if scores.void_share > VOID_LIMIT:
        reason = (
            f"{percent(scores.void_share)} of the pairs are void through infrastructure errors "
            f"(limit {VOID_LIMIT:.0%})."
        )
        return GuardDecision("cannot_tell", (reason,), numbers)
    return GuardDecision("pass", (), numbers)


def _worst(decisions: Iterable[GuardDecision]) -> Literal["pass", "reject", "cannot_tell"]:
    outcomes = {decision.outcome for decision in decisions}
    if "veto" in outcomes:
        return "reject"
    return "cannot_tell" if "cannot_tell" in outcomes else "pass"


def _telling(decisions: Iterable[GuardDecision]) -> list[GuardDecision]:
    """Return the decisions that explain the outcome: those against the candidate, or else all."""
    everything = list(decisions)
    return [decision for decision in everything if decision.outcome != "pass"] or everything
