"""The A/A control: the incumbent in both arms, before the first candidate is tested and every ten candidates after.

The second arm is played now. The first is what paired tests use, so a later control also shows whether the model, or
what serves it, has drifted since those trials were recorded.
"""

from __future__ import annotations

from evolve.errors import ControlFailed
from evolve.gate.plan import self_check
from evolve.gate.scores import TaskScores, table
from evolve.loop.context import INCUMBENT, Incumbent, RunContext
from evolve.loop.exam import score_of
from evolve.loop.numbering import control_trial, first_trial
from evolve.rollout import Job
from evolve.store import Purpose, SelfCheckEntry

CONTROL_EVERY = 10
CONTROL_TRIALS = 2
"""Trials per task and arm; those of the first arm serve the paired tests again."""


async def control(run: RunContext, incumbent: Incumbent, number: int) -> None:
    """Measure the incumbent against itself where it is time for that; passed already is done.

    A control that failed is repeated on fresh trials when the run is resumed; every attempt stays on record.

    Raises:
        ControlFailed: the arms differ although nothing does, or too many pairs are void.
    """
    if (number - 1) % CONTROL_EVERY:
        return
    known = [check for check in run.ledger.self_checks(run.run_id) if check.number == number]
    if any(check.is_passed for check in known):
        return
    measured = _greedy(run, number) if run.model.is_greedy else await _measured(run, incumbent, number, len(known) + 1)
    check = run.ledger.save_self_check(measured)
    told = " ".join(check.reasons)
    if not check.is_passed:
        raise ControlFailed(
            f"the A/A control before candidate {number} failed: {told} Nothing was decided on this candidate. "
            "Mend the cause (`evolve doctor`), then `evolve run --resume` repeats the control on fresh trials."
        )
    run.say(f"A/A control before candidate {number}: {told}")


def _greedy(run: RunContext, number: int) -> SelfCheckEntry:
    told = "The model is greedy: the incumbent repeats itself and differs from itself by nothing; nothing was asked."
    return SelfCheckEntry(
        run_id=run.run_id,
        number=number,
        attempt=1,
        is_passed=True,
        pairs=0,
        p=1.0,
        effect=0.0,
        pair_variance=0.0,
        reasons=(told,),
    )


async def _measured(run: RunContext, incumbent: Incumbent, number: int, attempt: int) -> SelfCheckEntry:
    first, second = first_trial(run, number), control_trial(number, attempt, CONTROL_TRIALS)
    tasks = run.train()
    jobs = [
        Job(task, start + turn, incumbent.runtime, INCUMBENT)
        for task in tasks
        for turn in range(CONTROL_TRIALS)
        for start in (first, second)
    ]
    played = iter(await run.rollout.roll_out(jobs, Purpose.NOISE))
    arms = [[(score_of(next(played)), score_of(next(played))) for _ in range(CONTROL_TRIALS)] for _ in tasks]
    scores = table(
        TaskScores(task.task_id, task.family, "train", tuple(a for a, _ in pairs), tuple(b for _, b in pairs))
        for task, pairs in zip(tasks, arms, strict=True)
    )
    found = self_check(scores)
    return SelfCheckEntry(
        run_id=run.run_id,
        number=number,
        attempt=attempt,
        is_passed=found.is_passed,
        pairs=scores.pairs,
        p=found.p,
        effect=found.effect,
        pair_variance=found.pair_variance,
        reasons=found.reasons,
    )
