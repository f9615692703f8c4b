"""The second question, for a candidate that only takes units away: is it at least not worse?

It is asked where the paired test found no gain, once, on all the trials there are. Its error (passing what loses three
points or more) is held at the candidate's alpha, and the run's error budget is charged with that alpha a second time.
"""

from __future__ import annotations

from evolve.figures import percent, points
from evolve.gate.guards import FEWEST_GUARD_TASKS, GuardDecision
from evolve.gate.noninferiority import MARGIN, simplification
from evolve.gate.scores import PairedScores
from evolve.gate.sequential import FEWEST_TASKS, VOID_LIMIT
from evolve.gate.signflip import pair_p
from evolve.harness.runtime import HarnessRuntime
from evolve.loop.exam import Exam
from evolve.loop.measures import tokens_per_episode
from evolve.loop.observe import EVIDENCE_TRIAL
from evolve.store import Purpose

CLEARLY_WORSE_P = 0.05
"""Of a drop, where trials were not meant to decide. The noise of a sampled model alone must not cost a candidate."""


async def removed_units(exam: Exam) -> frozenset[str]:
    """Return the units that the candidate leaves out or switches off; none where it adds or renames any."""
    if exam.removed is None:
        before, after = await _units(exam, exam.incumbent.runtime), await _units(exam, exam.runtime)
        exam.removed = before - after if after < before else frozenset()
        exam.units = len(before), len(after)
    return exam.removed


async def may_be_simpler(exam: Exam, scores: PairedScores) -> bool:
    """Tell whether the second question is worth its trials: units are gone, and it is not clearly worse already."""
    if len(scores.tasks) < FEWEST_TASKS or 1.0 - pair_p(scores) <= CLEARLY_WORSE_P:
        return False
    return bool(await removed_units(exam))


async def not_worse(exam: Exam, max_trials: int) -> tuple[GuardDecision, PairedScores]:
    """Play all trials on the training tasks and ask the second question."""
    trials = dict.fromkeys(exam.run.train(), range(exam.fresh_trial, exam.fresh_trial + max_trials))
    await exam.play(trials, Purpose.PAIRED_TEST)
    exam.tested = trials
    exam.alpha_spent += exam.alpha
    scores = exam.scores(trials)
    decision = _judged(exam, scores)
    exam.is_simplification = decision.outcome == "pass"
    return decision, scores


def still_not_worse(exam: Exam, both: PairedScores) -> GuardDecision:
    """Ask the second question of both folds together, once the guard tasks were played."""
    tasks = len(both.fold("guard").differences)
    if tasks < FEWEST_GUARD_TASKS:
        reason = f"{tasks} guard tasks are too few to rule out a loss ({FEWEST_GUARD_TASKS} are needed)."
        return GuardDecision("cannot_tell", (reason,), {"tasks": tasks})
    return _judged(exam, both)


def shows_no_loss(scores: PairedScores) -> GuardDecision:
    """Ask fresh trials whether they show a loss beyond the margin after all."""
    told = f"On {scores.pairs} fresh pairs it moved by {points(scores.effect)} points per task"
    if scores.effect > -MARGIN:
        return GuardDecision("pass", (f"{told}: simpler and not worse.",), {"gain": scores.effect})
    return GuardDecision("cannot_tell", (f"{told}: a loss shows on fresh trials.",), {"gain": scores.effect})


def _judged(exam: Exam, scores: PairedScores) -> GuardDecision:
    if scores.void_share > VOID_LIMIT:
        reason = f"{percent(scores.void_share)} of the pairs are void (limit {VOID_LIMIT:.0%})."
        return GuardDecision("cannot_tell", (reason,), {"void_share": scores.void_share})
    return simplification(scores, units=exam.units, tokens=tokens_per_episode(exam), level=1.0 - 2.0 * exam.alpha)


async def _units(exam: Exam, runtime: HarnessRuntime) -> frozenset[str]:
    """Return the ids of the units that may fire; rule code is loaded in the worker to know them."""
    task = exam.run.train()[0]
    session = exam.run.environment.open(task, EVIDENCE_TRIAL)
    try:
        limit = exam.run.environment.card.step_limit
        episode = await runtime.begin(session.opening, session.tools, task_text=task.text, step_limit=limit)
        try:
            texts = runtime.harness.text_units() if runtime.harness else ()
            return frozenset(unit for unit, layer in (*texts, *episode.rule_units) if runtime.is_on(unit, layer))
        finally:
            await episode.close()
    finally:
        session.close()
