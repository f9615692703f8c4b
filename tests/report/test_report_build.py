"""What the report of a run holds, and what it must not hold."""

import shutil

import pytest
from reported import RUN, opened

from evolve.errors import UserError
from evolve.records import Decision, FailureClass, Split
from evolve.report.build import build
from evolve.report.document import Report
from evolve.store import CandidateState


def test_each_iteration_tells_what_the_incumbent_solved_and_why_the_rest_failed(report):
    """Of 20 tasks the agent solves 8; the calls it writes as text and the looping are told apart by class."""
    first = report.iterations[0]
    assert (first.baseline.solved, first.baseline.tasks, first.baseline.errors) == (8, 20, 0)
    assert first.baseline.ci95[0] < first.baseline.rate < first.baseline.ci95[1]
    assert first.failure_classes == {
        FailureClass.ACTION: 8,
        FailureClass.CONTRACT: 0,
        FailureClass.TRAJECTORY: 4,
        FailureClass.REASONING: 0,
    }
    assert [each.number for each in report.iterations] == [1, 2]


def test_patterns_come_with_support_and_counter_support(report):
    """The pattern of calls written as text is shown by 8 tasks and by no success."""
    found = {line.title: line for line in report.iterations[0].patterns}
    assert (found["Call as text: code"].support, found["Call as text: code"].counter_support) == (8, 0)
    assert report.iterations[0].pattern_count == len(report.iterations[0].patterns)


def test_an_accepted_candidate_brings_all_its_evidence(report):
    """Stages, effect, per-task table, divergence, predictions, patch and evidence digest are in the report."""
    accepted = next(c for c in report.candidates if c.decision is Decision.ACCEPT)
    assert [stage.outcome for stage in accepted.stages] == ["pass"] * 7 + ["accept"]
    assert accepted.effect == pytest.approx(0.4)
    assert accepted.interval[0] < accepted.effect < accepted.interval[1]
    assert [task.change for task in accepted.tasks] == [1.0] * 8 + [0.0] * 12
    assert (accepted.divergence.episodes, accepted.divergence.episodes_diverged) == (20 + 12, 8 + 5)
    assert (accepted.predictions.fixed_precision, accepted.predictions.fixed_recall) == (1.0, 1.0)
    assert "+++ b/harness_artifacts/household/action.py" in accepted.diff
    assert len(accepted.evidence_digest) == 64


def test_a_rejected_candidate_tells_where_and_why(report):
    """A candidate that the screen rejects has its reason and no effect."""
    rejected = next(c for c in report.candidates if c.decision is Decision.REJECT)
    assert rejected.stages[-1].stage == "screen"
    assert rejected.reasons
    assert (rejected.effect, rejected.tasks, rejected.divergence) == (None, (), None)


def test_a_unit_is_credited_with_the_tasks_that_fail_without_it(report):
    """The rescue of calls written as text fired in 8 episodes, all successes where the incumbent fails."""
    line = next(unit for unit in report.units if unit.unit == "action.rescue-text-call")
    assert (line.episodes, line.successes, line.helped, line.hurt, line.faults) == (8, 8, 8, 0, 0)
    assert line.firings >= 8


def test_totals_are_those_of_the_ledger(workspace, report):
    """Episodes, requests and tokens are the ledger's sums."""
    with opened(workspace) as (ledger, _, _):
        totals = ledger.totals(RUN)
    assert (report.totals.episodes, report.totals.requests) == (totals.episodes, totals.requests)
    assert report.totals.requests_asked + report.totals.requests_reused == totals.requests
    assert report.totals.usage == totals.usage


def test_looks_and_freezes_are_reported_with_their_results(report):
    """The one look at held-out tasks shows the frozen harness above the base, and the model's name is known from it."""
    (look,) = report.looks
    assert look.evaluation.frozen.successes > look.evaluation.base.successes
    assert [frozen.name for frozen in report.freezes] == ["v1"]
    assert report.model.model_id == "small"


def test_no_guard_or_heldout_task_is_named(workspace, report):
    """Neither fold's task ids occur anywhere in the report, though both were played."""
    with opened(workspace) as (ledger, _, _):
        guard = {entry.task_id for entry in ledger.episodes(RUN) if entry.split is Split.GUARD}
        heldout = {entry.task_id for entry in ledger.look_episodes(report.looks[0].look.look_id)}
    written = report.model_dump_json()
    assert guard
    assert heldout
    assert not [task for task in guard | heldout if task in written]


def test_guard_and_heldout_traces_are_not_needed(workspace, report, tmp_path):
    """With the traces of both folds gone the report is the same: they are never opened."""
    copy = shutil.copytree(workspace.root, tmp_path / "copy")
    for split in ("guard", "heldout"):
        shutil.rmtree(copy / "traces" / "household" / split)
    with opened(type(workspace)(copy)) as (ledger, repository, traces):
        assert build(ledger, repository, traces, RUN) == report


def test_a_report_survives_the_round_trip_through_json(report):
    """What `--json` prints reads back as the same record."""
    assert Report.model_validate_json(report.model_dump_json()) == report


def test_a_run_that_has_just_begun_has_a_report(workspace, tmp_path):
    """A run without an episode gives a report without iterations, and its whole error budget is left."""
    copy = type(workspace)(shutil.copytree(workspace.root, tmp_path / "copy"))
    with opened(copy) as (ledger, repository, traces):
        known = ledger.run(RUN)
        config = {**known.config, "gate": {**known.config["gate"], "policy": "strict"}}
        ledger.start_run(
            "household-002", environment="household", model="m" * 64, base_commit=known.base_commit, config=config
        )
        begun = build(ledger, repository, traces, "household-002")
    assert (begun.iterations, begun.run.wall_s, begun.totals.episodes) == ((), None, 0)
    assert (begun.budget.total, begun.budget.left) == (0.02, 0.02)
    assert (begun.model.model_id, begun.model.fingerprint) == ("", None)


def test_a_candidate_under_test_shows_the_stages_so_far(workspace, report, tmp_path):
    """A run that was cut off in the gate reports the stages that are on record and no decision."""
    copy = type(workspace)(shutil.copytree(workspace.root, tmp_path / "copy"))
    with opened(copy) as (ledger, repository, traces):
        known = ledger.candidates(RUN)[0].candidate
        ledger.start_run(
            "household-002",
            environment="household",
            model=report.model.digest,
            base_commit=report.run.base_commit,
            config=report.run.config,
        )
        ledger.add_candidate(known.model_copy(update={"candidate_id": "household-002-01", "run_id": "household-002"}))
        ledger.mark_testing("household-002-01")
        ledger.save_stage("household-002-01", report.candidates[0].stages[0])
        (candidate,) = build(ledger, repository, traces, "household-002").candidates
    assert (candidate.decision, candidate.state) == (None, CandidateState.TESTING)
    assert [stage.stage for stage in candidate.stages] == ["scope"]


def test_completions_of_a_recording_are_declared(workspace, tmp_path):
    """A run whose model is of kind `recorded` says so, even where the recording is gone."""
    copy = type(workspace)(shutil.copytree(workspace.root, tmp_path / "copy"))
    with opened(copy) as (ledger, repository, traces):
        known = ledger.run(RUN)
        model = {**known.config["model"], "kind": "recorded", "recording": str(tmp_path / "gone.jsonl.xz")}
        config = {**known.config, "model": model}
        ledger.start_run(
            "household-002", environment="household", model="m" * 64, base_commit=known.base_commit, config=config
        )
        assert build(ledger, repository, traces, "household-002").model.is_recorded


def test_an_unknown_run_is_a_user_error(workspace):
    """The message names the run and the command that lists those there are."""
    with opened(workspace) as (ledger, repository, traces), pytest.raises(UserError, match="runs list"):
        build(ledger, repository, traces, "nothing-001")
