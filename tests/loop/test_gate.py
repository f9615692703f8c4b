"""The gate on real episodes of a sampled agent: who passes, who does not, and what is said of it."""

from __future__ import annotations

import gate_story
import pytest
import small_run
from gate_story import broken_where, judge, note, propose, reasons, sampled
from small_run import outcomes

from evolve.errors import Interrupted
from evolve.protocols import ModelRequest
from evolve.records import Completion, Decision, Split
from evolve.store import Purpose
from evolve.workspace import Workspace


def test_a_candidate_that_helps_is_accepted_on_fresh_trials(waiting: Workspace) -> None:
    """Paired test, guard tasks and confirmation agree, and the gain that is reported is the fresh one."""
    propose(waiting, {"contract.toml": note("BRIGHT")})
    verdict = judge(waiting, model=sampled())
    stages = {stage.stage: stage for stage in verdict.stages}
    assert verdict.decision is Decision.ACCEPT
    assert stages["confirmation"].numbers["gain"] == pytest.approx(verdict.effect)
    assert stages["confirmation"].numbers["claimed"] == pytest.approx(stages["paired_test"].numbers["effect"])
    with gate_story.opened(waiting) as ledger:
        tried = {episode.trial for episode in ledger.episodes(gate_story.RUN, purpose=Purpose.CONFIRMATION)}
        tested = {episode.trial for episode in ledger.episodes(gate_story.RUN, purpose=Purpose.PAIRED_TEST)}
    assert tried == {1000, 1001, 1002, 1003}
    assert tested <= {1, 2, 3, 4}


def test_a_candidate_that_changes_nothing_for_the_better_is_not_accepted(waiting: Workspace) -> None:
    """Words that redraw all episodes and help none end in the paired test, not in an accept."""
    propose(waiting, {"contract.toml": note("Be calm.")})
    verdict = judge(waiting, model=sampled())
    assert verdict.decision is not Decision.ACCEPT
    assert verdict.stages[-1].stage == "paired_test"
    assert verdict.alpha == pytest.approx(0.005)


def test_a_harmful_candidate_is_rejected_early(waiting: Workspace) -> None:
    """What makes everything worse does not get past two trials per task."""
    propose(waiting, {"contract.toml": note("HEAVY")})
    verdict = judge(waiting, model=sampled())
    assert verdict.decision is Decision.REJECT
    assert verdict.stages[-1].stage in ("screen", "paired_test")
    assert verdict.stages[-1].numbers.get("trials", 1) <= 2


def test_what_helps_on_training_tasks_alone_is_stopped_by_the_guard_tasks(waiting: Workspace) -> None:
    """A gain that does not carry over to tasks whose traces nobody saw is vetoed, and that use of them is counted."""
    propose(waiting, {"contract.toml": note("NARROW")})
    verdict = judge(waiting, model=sampled())
    assert outcomes(verdict.stages)["paired_test"] == "pass"
    assert outcomes(verdict.stages)["guards"] == "reject"
    assert "does not carry over" in reasons(verdict)
    assert verdict.stages[-1].numbers["guard_uses"] == 1


def test_one_task_that_breaks_never_vetoes(waiting: Workspace) -> None:
    """A task that was solved nine times in ten and is never solved again does not outvote a group that gains."""
    propose(waiting, {"contract.toml": note("BRIGHT BRICK")})
    verdict = judge(waiting, model=sampled())
    first = min(task for task, row in _per_task(verdict).items() if row[0] > row[1] == 0.0)
    assert first
    assert verdict.decision is Decision.ACCEPT


def test_too_many_infrastructure_errors_give_cannot_tell(waiting: Workspace) -> None:
    """With more than one pair in twenty void nothing is decided, however good the rest looks."""
    propose(waiting, {"contract.toml": note("BRIGHT")})
    verdict = judge(waiting, "rollout.error_share=1.0", model=sampled(broken_where("BRIGHT", 0.11)))
    assert verdict.decision is Decision.CANNOT_TELL
    assert "void through infrastructure errors" in reasons(verdict)


def test_a_gate_that_is_cut_off_and_resumed_equals_an_unbroken_one(
    waiting: Workspace, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Stopped after every 600th request and resumed, it comes to the same evidence, digit by digit."""
    other = gate_story.copy_of(waiting, tmp_path_factory.mktemp("other"))
    for workspace in (waiting, other):
        propose(workspace, {"contract.toml": note("BRIGHT")})
    unbroken = judge(waiting, model=sampled())
    stops = 0
    while True:
        try:
            resumed = judge(other, model=sampled(_tiring(600)))
            break
        except Interrupted:
            stops += 1
    assert stops >= 2
    assert resumed.evidence_digest == unbroken.evidence_digest


def test_a_note_that_gives_a_task_away_is_stopped_by_the_lint(waiting: Workspace) -> None:
    """A candidate that quotes one training task never costs a request."""
    with gate_story.opened(waiting) as ledger:
        failing = ledger.patterns(gate_story.RUN, 1)[0].pattern.tasks[0]
    (text,) = [t.text for t in gate_story.tasks(Split.TRAIN) if t.task_id == failing]
    propose(waiting, {"contract.toml": note(f"If you are told: {text.replace(chr(34), '')}, look first.")})
    model = sampled()
    verdict = judge(waiting, model=model)
    assert (verdict.decision, verdict.stages[-1].stage) == (Decision.REJECT, "lint")
    assert failing in reasons(verdict)
    assert verdict.alpha is None
    assert verdict.requests_asked == 0


def test_predictions_are_settled_task_by_task(waiting: Workspace) -> None:
    """A predicted fix that came is marked true, one that did not false, and both are in the ledger."""
    tasks = [task.task_id for task in gate_story.tasks(Split.TRAIN)]
    propose(waiting, {"contract.toml": note("BRIGHT")}, predicts_fixed=[tasks[1], tasks[2], tasks[4]])
    verdict = judge(waiting, model=sampled())
    rows = _per_task(verdict)
    with gate_story.opened(waiting) as ledger:
        found = {entry.task_id: entry.came_true for entry in ledger.predictions(verdict.candidate_id)}
    assert found == {task: rows[task][1] - rows[task][0] >= 0.5 for task in found}
    assert len(found) == 3


def _per_task(verdict) -> dict[str, list[float]]:
    return next(stage.numbers["per_task"] for stage in verdict.stages if stage.stage == "paired_test")


def _tiring(requests: int):
    left = iter(range(requests))

    def script(request: ModelRequest) -> Completion:
        if next(left, None) is None:
            raise Interrupted("tired")
        return gate_story.moody(request)

    return script


def test_the_stories_play_on_a_sampled_model() -> None:
    """The agent of these stories is no greedy one, and its mood depends on task, trial and prompt alone."""
    assert not sampled().fingerprint.is_greedy
    assert small_run.configured(*gate_story.BY_HAND).gate.max_trials == 4
