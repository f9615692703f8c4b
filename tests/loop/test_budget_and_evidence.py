"""The error budget over a run, simplifications, and evidence that cannot be changed behind the gate's back."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import gate_story
import pytest
import small_run
from gate_story import begin, judge, note, opened, propose, reasons, sampled
from small_run import outcomes

from evolve.cli.candidate_text import candidate_document, candidate_text
from evolve.cli.outlook import look_ahead, outlook_text
from evolve.cli.place import Place
from evolve.cli.run_text import run_document
from evolve.environments.household import create
from evolve.errors import CanaryFound, StoreError, UserError
from evolve.loop.accept import take
from evolve.models.scripted import reply_text
from evolve.protocols import ModelRequest
from evolve.records import Completion, Decision, Verdict, digest_of
from evolve.repository import open_repository, run_branch
from evolve.store import Review
from evolve.store.ledger import Ledger
from evolve.workspace import Workspace

NAME = f"{gate_story.RUN}-01"
TWO = ("iterations=2", "gate.max_trials=1")
USEFUL, USELESS = note("HINT", "contract.hint"), note("Be calm.", "contract.calm")


def test_the_error_budget_survives_a_resume(tmp_path: Path) -> None:
    """Two candidates, tested by two processes, spend of one budget, and what is left stands in the run's document."""
    workspace = begin(tmp_path, *TWO, model=sampled())
    left = []
    for number, words in ((1, "Be calm."), (2, "Be brave.")):
        propose(workspace, {"contract.toml": note(words)}, number)
        verdict = judge(workspace, *TWO, number=number, model=sampled())
        assert verdict.alpha == pytest.approx(0.005)
        with opened(workspace) as ledger:
            left.append(run_document(ledger, ledger.run(gate_story.RUN))["budget"]["left"])
    assert left == pytest.approx([0.095, 0.09])


def test_an_explore_run_never_commits(tmp_path: Path) -> None:
    """What `explore` accepts moves its own search on, and is refused by accept; no branch gets a commit."""
    settings = ("gate.policy=explore", "gate.max_trials=2")
    workspace = begin(tmp_path, *settings, model=sampled())
    propose(workspace, {"contract.toml": note("BRIGHT")})
    assert judge(workspace, *settings, model=sampled()).decision is Decision.ACCEPT
    with open_repository(workspace.root) as repository, Ledger(workspace.ledger_url) as ledger:
        before = repository.head_commit()
        with pytest.raises(UserError, match="explore"):
            take(repository, ledger, NAME, date=small_run.START)
        assert repository.commit(run_branch(gate_story.RUN)) == before == repository.head_commit()


def test_an_incumbent_that_gives_sealed_content_away_is_quarantined(tmp_path: Path) -> None:
    """Found when the next iteration looks at the incumbent, it lies with the candidate that became the incumbent."""
    settings = ("gate.policy=explore", "gate.max_trials=2")
    workspace = begin(tmp_path, *settings, model=sampled())
    propose(workspace, {"contract.toml": note("BRIGHT")})
    assert judge(workspace, *settings, model=sampled()).decision is Decision.ACCEPT
    canary = create({}).card.canary

    def knowing(request: ModelRequest) -> Completion:
        return reply_text(canary) if "BRIGHT" in request.messages[0]["content"] else gate_story.moody(request)

    again = (*gate_story.BY_HAND, *settings, "iterations=2")
    with pytest.raises(CanaryFound, match=f"{NAME} is under quarantine"):
        small_run.run(workspace, *again, resume=gate_story.RUN, model=sampled(knowing))
    with opened(workspace) as ledger:
        assert ledger.candidate(NAME).review is Review.QUARANTINED
    with pytest.raises(CanaryFound, match="is over"):
        small_run.run(workspace, *again, resume=gate_story.RUN, model=sampled())


def test_a_unit_that_does_nothing_may_go(tmp_path: Path) -> None:
    """Leaving out a note without effect is accepted as a simplification, and costs the budget a second share."""
    workspace = begin(tmp_path, harness={"contract.toml": USEFUL + USELESS})
    propose(workspace, {"contract.toml": USEFUL})
    verdict = judge(workspace)
    stages = {stage.stage: stage for stage in verdict.stages}
    assert verdict.decision is Decision.ACCEPT
    assert "1 units against 2" in " ".join(stages["paired_test"].reasons)
    assert stages["guards"].numbers["simplification"]["low"] > -0.03
    assert verdict.alpha == pytest.approx(2 * 0.005)


def test_a_unit_that_helps_may_not_go(tmp_path: Path) -> None:
    """Leaving out a note that tasks depend on is rejected."""
    workspace = begin(tmp_path, harness={"contract.toml": USEFUL + USELESS})
    propose(workspace, {"contract.toml": USELESS})
    assert judge(workspace).decision is Decision.REJECT


def test_noise_is_no_proof_of_a_simplification(tmp_path: Path) -> None:
    """Where a sampled model redraws its episodes, a few trials cannot rule out a loss, and nothing is accepted."""
    settings = ("gate.max_trials=2",)
    workspace = begin(tmp_path, *settings, harness={"contract.toml": USEFUL + USELESS}, model=sampled())
    propose(workspace, {"contract.toml": USEFUL})
    verdict = judge(workspace, *settings, model=sampled())
    assert verdict.decision is not Decision.ACCEPT
    assert "a loss cannot be ruled out" in reasons(verdict)


@pytest.fixture(scope="module")
def _accepted(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    workspace = begin(tmp_path_factory.mktemp("accepted"))
    propose(workspace, {"contract.toml": USEFUL})
    assert judge(workspace).decision is Decision.ACCEPT
    return workspace


@pytest.fixture
def accepted(_accepted: Workspace, tmp_path: Path) -> Workspace:
    """Return a workspace of its own with an accepted candidate that waits for review."""
    return gate_story.copy_of(_accepted, tmp_path)


def accept(workspace: Workspace) -> str:
    with open_repository(workspace.root) as repository, Ledger(workspace.ledger_url) as ledger:
        return take(repository, ledger, NAME, date=small_run.START)


def change(workspace: Workspace, statement: str, *values: str) -> None:
    with closing(sqlite3.connect(workspace.state / "ledger.sqlite")) as connection, connection:
        assert connection.execute(statement, values).rowcount == 1


def test_untouched_evidence_is_accepted(accepted: Workspace) -> None:
    """Rows, verdict and trailer agree, and the commit on the user's branch carries the same digest."""
    commit = accept(accepted)
    with open_repository(accepted.root) as repository:
        assert repository.trailers(commit).evidence == gate_story.verdict_of(accepted).evidence_digest


def test_a_changed_stage_row_is_refused(accepted: Workspace) -> None:
    """One number that is changed in one stored stage, and accept refuses."""
    with opened(accepted) as ledger:
        (stage,) = [stage for stage in ledger.stages(NAME) if stage.stage == "paired_test"]
    flattered = stage.model_copy(update={"numbers": {**stage.numbers, "wins": 40}})
    statement = "UPDATE stage_results SET record = ? WHERE candidate_id = ? AND stage = 'paired_test'"
    change(accepted, statement, flattered.model_dump_json(), NAME)
    with pytest.raises(StoreError, match="is not the one that commit"):
        accept(accepted)


def test_a_verdict_that_is_forged_with_its_digest_is_refused(accepted: Workspace) -> None:
    """Whoever rewrites verdict, digest and stages alike still meets the commit that was made of them."""
    verdict = gate_story.verdict_of(accepted)
    forged = Verdict.model_validate({**verdict.model_dump(), "effect": 0.99})
    assert forged.evidence_digest == digest_of(forged.model_dump(mode="json"))
    statement = "UPDATE verdicts SET record = ?, evidence_digest = ?, effect = 0.99 WHERE candidate_id = ?"
    change(accepted, statement, json.dumps(forged.model_dump(mode="json")), forged.evidence_digest, NAME)
    with pytest.raises(StoreError, match="is not the one that commit"):
        accept(accepted)


def test_a_missing_run_branch_is_refused(accepted: Workspace) -> None:
    """Without the commit on the run's branch there is nothing to check the evidence against."""
    with open_repository(accepted.root) as repository:
        repository.git.run("update-ref", "-d", run_branch(gate_story.RUN))
    with pytest.raises(StoreError, match="cannot be checked"):
        accept(accepted)


def test_each_stage_of_an_accept_is_on_record(accepted: Workspace) -> None:
    """All eight stages stand in the ledger in their order, equal to those of the verdict."""
    with opened(accepted) as ledger:
        stages = ledger.stages(NAME)
    assert list(outcomes(stages)) == list(outcomes(gate_story.verdict_of(accepted).stages))
    assert [stage.outcome for stage in stages] == ["pass"] * 7 + ["accept"]


def test_show_explains_the_verdict(accepted: Workspace) -> None:
    """Stages with numbers, requests against a full re-run, predictions, scores by task and the digest are shown."""
    with opened(accepted) as ledger:
        document = candidate_document(ledger, ledger.candidate(NAME))
    told, seen = candidate_text(document), document["divergence"]
    assert f"Requests: {seen['requests_asked']} asked where a full re-run asks {seen['requests']}" in told
    assert 0 < seen["requests_asked"] == seen["requests"], "a note stands in every first request: nothing is reused"
    assert 0 < seen["tokens_asked"] == seen["tokens"]
    assert "Predictions: 0 of 0 foreseen fixes came true; 8 tasks were fixed in all" in told
    assert "paired_test  accept_p" in told
    rows = next(stage for stage in document["stages"] if stage["stage"] == "paired_test")["numbers"]["per_task"]
    assert all(f"{task} " in told for task in rows)
    assert document["evidence_digest"][:12] in told
    brief = candidate_text(document, is_brief=True)
    still = [task for task, (old, new, _) in rows.items() if old == new]
    assert f"{len(still)} more tasks did not move" in brief
    assert "paired_test  accept_p" not in brief
    assert {task: f"{task} " in brief for task in rows} == {task: task not in still for task in rows}


def test_a_plan_takes_the_noise_that_a_control_measured(waiting: Workspace) -> None:
    """Without a control the noise is assumed, and that is said; after one it is measured, and so is the pace."""
    place = Place(waiting, small_run.configured(*gate_story.BY_HAND), {}, {})
    before = look_ahead(place, wished_gain=0.05)
    assert before.noise.pairs == 0
    assert before.noise.source.startswith("assumed")
    assert any("A gain of 5.0 points is wished for" in warning for warning in before.warnings)
    propose(waiting, {"contract.toml": note("Be calm.")})
    judge(waiting, model=sampled())
    after = look_ahead(place, wished_gain=0.9)
    with opened(waiting) as ledger:
        (check,) = ledger.self_checks(gate_story.RUN)
    assert (after.noise.pairs, after.noise.pair_variance) == (40, max(check.pair_variance, 3 / 40))
    assert after.warnings == ()
    assert after.expected.measured_on == gate_story.RUN
    assert after.expected.episodes < after.episodes_at_most
    assert gate_story.RUN in outlook_text(after)


ROWS = {
    "a score of the candidate": "UPDATE episodes SET score = 1.0, success = 1 WHERE episode_id = (SELECT e.episode_id "
    "FROM episodes e JOIN run_episodes r ON r.episode_id = e.episode_id WHERE r.arm <> '' AND e.success = 0 LIMIT 1)",
    "a score of the incumbent": "UPDATE episodes SET score = 0.0, success = 0 WHERE episode_id = (SELECT e.episode_id "
    "FROM episodes e JOIN run_episodes r ON r.episode_id = e.episode_id WHERE r.arm = '' AND r.purpose = 'paired_test' "
    "AND e.success = 1 LIMIT 1)",
}


@pytest.mark.parametrize("statement", ROWS.values(), ids=ROWS.keys())
def test_a_changed_trial_is_refused(accepted: Workspace, statement: str) -> None:
    """The verdict is bound to each score that it rests on, of both arms."""
    change(accepted, statement)
    with pytest.raises(StoreError, match="are not those that its verdict rests on"):
        accept(accepted)


def test_a_removed_trial_is_refused(accepted: Workspace) -> None:
    """One bad trial less is a better mean, and another evidence."""
    bad = "SELECT e.episode_id FROM episodes e JOIN run_episodes r ON r.episode_id = e.episode_id"
    change(
        accepted,
        f"DELETE FROM run_episodes WHERE arm = '{NAME}' AND purpose = 'paired_test' AND episode_id = "
        f"({bad} WHERE r.arm = '{NAME}' AND e.success = 0 AND r.purpose = 'paired_test' LIMIT 1)",
    )
    with pytest.raises(StoreError, match="are not those that its verdict rests on"):
        accept(accepted)


def test_a_trace_and_its_row_must_agree(tmp_path: Path) -> None:
    """A score edited on one side only, before a run is resumed, stops the run instead of entering its verdict."""
    workspace = begin(tmp_path)
    propose(workspace, {"contract.toml": USEFUL})
    change(
        workspace,
        "UPDATE episodes SET score = 0.0, success = 0 WHERE episode_id = "
        "(SELECT episode_id FROM episodes WHERE success = 1 AND split = 'train' LIMIT 1)",
    )
    with pytest.raises(StoreError, match="do not agree on episode"):
        judge(workspace)
