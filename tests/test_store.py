import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest

from evolve.errors import ConfigError, SealError, StoreError, UserError
from evolve.records import (
    Candidate,
    Decision,
    Episode,
    FailureClass,
    FrozenHarness,
    Layer,
    Observation,
    Opening,
    Pattern,
    Proposal,
    Score,
    Split,
    StageResult,
    Step,
    Usage,
    Verdict,
)
from evolve.store import CandidateState, EpisodeUse, Purpose, Review, RunStatus, SelfCheckEntry
from evolve.store.ledger import Ledger

RUN = {"environment": "household", "model": "m" * 64, "base_commit": "b" * 40}
FROZEN = FrozenHarness(environment="household", name="v1", tag="evolve/household/v1", commit="c" * 40, harness="h" * 64)
LOOK = {"environment": "household", "frozen_name": "v1", "harness": "h" * 64, "model": "m" * 64}


class Clock:
    """A clock that advances a second with each reading."""

    def __init__(self):
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self):
        self.now += timedelta(seconds=1)
        return self.now


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ws" / "ledger.db"


@pytest.fixture
def ledger(path):
    with Ledger(path, clock=Clock()) as ledger:
        ledger.start_run("r1", config={"trials": 3}, **RUN)
        yield ledger


def episode(number=1, **changes):
    shape = {
        "episode_id": f"e{number}",
        "task_id": f"t{number}",
        "environment": "household",
        "family": "look",
        "split": Split.TRAIN,
        "trial": 0,
        "model": "m" * 64,
        "harness": "off",
        "status": "done",
        "stop": "finished",
        "opening": Opening(system="s", user="u"),
        "steps": (Step(index=0, turn=0, observation=Observation(text="ok")),),
        "score": Score(value=0.5, success=False, version="1"),
        "usage": Usage(prompt_tokens=100, cached_tokens=10, completion_tokens=20, cost_usd=0.25),
        "requests": 4,
        "requests_asked": 3,
    }
    return Episode(**{**shape, **changes})


def record(ledger, episode, *, run_id="r1", arm="", purpose=Purpose.BASELINE, offset=0):
    use = EpisodeUse(episode, "household/train/off.jsonl", offset, arm, purpose)
    ledger.record_episodes([use], run_id=run_id)


def candidate(number=1, **changes):
    shape = {
        "candidate_id": f"r1-c{number:02}",
        "run_id": "r1",
        "number": number,
        "environment": "household",
        "parent_commit": "a" * 40,
        "commit": "c" * 40,
        "parent_harness": "p",
        "harness": "h",
        "proposer": "mechanic",
        "proposal": Proposal(
            hypothesis="it will be better",
            layer=Layer.SKILL,
            pattern_id="p1",
            predicts_fixed=("t1", "t2"),
            at_risk=("t3",),
        ),
        "files": ("skills/a.md",),
        "usage": Usage(prompt_tokens=7, cost_usd=0.5),
    }
    return Candidate(**{**shape, **changes})


def verdict(decision=Decision.ACCEPT, number=1, effect=0.125):
    stage = StageResult(stage="paired_test", outcome=decision.value, reasons=("because",), numbers={"p": 0.01})
    return Verdict(
        candidate_id=f"r1-c{number:02}", decision=decision, stages=(stage,), effect=effect, interval=(0.1, 0.3)
    )


def tamper(path, statement):
    with sqlite3.connect(path) as connection:
        connection.execute(statement)
    connection.close()


# runs


def test_a_run_comes_back_as_it_was_started_and_ended(path, ledger):
    """What is recorded is there after the ledger was closed and opened again."""
    ledger.finish_run("r1", RunStatus.DONE, "nothing left to propose")
    ledger.close()
    with Ledger(f"sqlite:///{path}") as again:
        run = again.run("r1")
        assert (run.environment, run.config, run.status) == ("household", {"trials": 3}, RunStatus.DONE)
        assert run.reason == "nothing left to propose"
        assert run.started_at < run.finished_at
        assert again.runs() == [run]


def test_a_run_is_taken_up_only_with_the_configuration_it_was_started_with(ledger):
    """Resume never mixes configurations, and the message names each setting that differs."""
    ledger.finish_run("r1", RunStatus.STOPPED, "Ctrl-C")
    assert ledger.start_run("r1", config={"trials": 3}, **RUN).status is RunStatus.RUNNING
    with pytest.raises(UserError, match=r"model \(was 'mmm.*trials \(was 3, now 5\)"):
        ledger.start_run("r1", config={"trials": 5}, **{**RUN, "model": "other"})
    assert ledger.run("r1").config == {"trials": 3}


def test_a_run_remembers_what_it_was_told_last(path, ledger):
    """The options of the latest start stand; a ledger from before options has none, and gets them when it is used."""
    ledger.start_run("r1", config={"trials": 3}, options={"budget.tokens": 5}, **RUN)
    ledger.start_run("r1", config={"trials": 3}, options={"budget.tokens": 7}, **RUN)
    assert ledger.run_options("r1") == {"budget.tokens": 7}
    assert ledger.run_options("r2") == {}
    ledger.close()
    tamper(path, "DROP TABLE run_options")
    tamper(path, "UPDATE ledger_info SET value = '2' WHERE key = 'schema_version'")
    with Ledger(path, is_read_only=True) as old:
        assert old.run_options("r1") == {}
    with Ledger(path) as renewed:
        renewed.start_run("r1", config={"trials": 3}, options={"iterations": 1}, **RUN)
        assert renewed.run_options("r1") == {"iterations": 1}


def test_runs_are_listed_newest_first(ledger):
    """The run that was started last is on top."""
    ledger.start_run("r0", config={}, **RUN)
    assert [run.run_id for run in ledger.runs()] == ["r0", "r1"]


def test_an_unknown_run_or_candidate_is_the_users_error(ledger):
    """A wrong name says where the right ones are listed."""
    with pytest.raises(UserError, match="runs list"):
        ledger.run("nope")
    with pytest.raises(UserError, match="candidates list"):
        ledger.candidate("nope")


# episodes


def test_recording_an_episode_again_counts_nothing_twice(ledger):
    """A resumed run that records what it had recorded changes neither rows nor totals, and the first place stands."""
    record(ledger, episode(1), offset=5)
    before = ledger.totals("r1")
    record(ledger, episode(1), offset=9)
    assert ledger.totals("r1") == before
    assert ledger.episode_row("e1").trace_offset == 5
    assert [row.episode_id for row in ledger.episodes("r1")] == ["e1"]


def test_an_episode_that_serves_two_arms_is_paid_for_once(ledger):
    """The totals of a run count each episode once however many candidates it serves."""
    record(ledger, episode(1))
    record(ledger, episode(1), arm="c1", purpose=Purpose.SCREEN)
    record(ledger, episode(2), arm="c1", purpose=Purpose.SCREEN)
    ledger.add_candidate(candidate())
    totals = ledger.totals("r1")
    assert (totals.episodes, totals.requests, totals.requests_asked) == (2, 8, 6)
    assert totals.usage == Usage(prompt_tokens=200, cached_tokens=20, completion_tokens=40, cost_usd=0.5)
    assert totals.proposer_usage == Usage(prompt_tokens=7, cost_usd=0.5)
    assert [row.episode_id for row in ledger.episodes("r1", arm="c1")] == ["e1", "e2"]
    assert [row.episode_id for row in ledger.episodes("r1", arm="")] == ["e1"]
    assert ledger.episodes("r1", arm="", purpose=Purpose.SCREEN) == []


def test_an_episode_reused_from_an_earlier_run_costs_the_later_run_nothing(ledger):
    """Reuse across runs shows as an episode without new requests."""
    record(ledger, episode(1))
    ledger.start_run("r2", config={}, **RUN)
    record(ledger, episode(1), run_id="r2")
    totals = ledger.totals("r2")
    assert (totals.episodes, totals.requests, totals.requests_asked, totals.usage) == (1, 4, 0, Usage())


def test_a_failed_attempt_is_replaced_by_a_finished_one_and_never_the_other_way(ledger):
    """Infrastructure errors leave no trace in the score once the retry succeeded."""
    failed = episode(1, status="error", stop="error", score=None, error="endpoint: 503")
    record(ledger, failed)
    assert ledger.episode_row("e1").score is None
    record(ledger, episode(1), offset=7)
    record(ledger, failed)
    row = ledger.episode_row("e1")
    assert (row.status, row.score, row.trace_offset) == ("done", 0.5, 7)


def test_episodes_recorded_together_count_as_if_one_by_one(ledger):
    """What two arms share is paid for by the first, what is finished stays, and a second time changes nothing."""
    failed = [episode(n, status="error", stop="error", score=None, error="endpoint: 503") for n in range(4)]
    together = [
        EpisodeUse(episode(1), "f", 1, "", Purpose.BASELINE),
        EpisodeUse(episode(1), "f", 2, "c1", Purpose.SCREEN),
        EpisodeUse(failed[1], "f", 3, "c2", Purpose.SCREEN),
        EpisodeUse(failed[2], "f", 4, "c1", Purpose.SCREEN),
        EpisodeUse(episode(2), "f", 5, "c2", Purpose.SCREEN),
        EpisodeUse(failed[3], "f", 6, "c2", Purpose.SCREEN),
    ]
    ledger.start_run("one-by-one", config={}, **RUN)
    for use in together:
        renamed = use.episode.model_copy(update={"episode_id": f"alone-{use.episode.episode_id}"})
        ledger.record_episodes([use._replace(episode=renamed)], run_id="one-by-one")
    for _ in range(2):
        ledger.record_episodes(together, run_id="r1")
        found = [(row.episode_id, row.status, row.trace_offset) for row in ledger.episodes("r1")]
        assert found == [("e1", "done", 1), ("e2", "done", 5), ("e3", "error", 6)]
        alone = [(f"alone-{name}", *rest) for name, *rest in found]
        assert [(row.episode_id, row.status, row.trace_offset) for row in ledger.episodes("one-by-one")] == alone
        assert _first_uses(ledger, "") == {("e1", ""), ("e2", "c1"), ("e3", "c2")}
        assert _first_uses(ledger, "alone-") == {("e1", ""), ("e2", "c1"), ("e3", "c2")}
        assert ledger.totals("r1") == ledger.totals("one-by-one")


def _first_uses(ledger, prefix):
    """Return which arm pays for each episode whose id begins so."""
    with ledger._reading() as session:
        rows = session.connection().exec_driver_sql("SELECT episode_id, arm FROM run_episodes WHERE is_first").all()
    return {(name.removeprefix("alone-"), arm) for name, arm in rows if name.startswith("alone-") == bool(prefix)}


def test_more_episodes_than_fit_one_statement_are_recorded(ledger):
    """Also a second time, which changes nothing; errored ones are found where they are asked for."""
    failed = {"status": "error", "stop": "error", "score": None, "error": "endpoint: 503"}
    episodes = [episode(n, **(failed if n % 5 == 0 else {})) for n in range(1_203)]
    for _ in range(2):
        ledger.record_episodes([EpisodeUse(e, "f", 0, "", Purpose.BASELINE) for e in episodes], run_id="r1")
        assert ledger.totals("r1").episodes == 1_203
    names = [e.episode_id for e in episodes]
    assert len(ledger.places(names)) == sum(e.status == "done" for e in episodes)
    assert len(ledger.places(names, with_errors=True)) == 1_203


def test_a_heldout_episode_cannot_be_recorded_in_a_run(ledger):
    """No row of a run names a held-out task."""
    with pytest.raises(SealError, match="held out"):
        record(ledger, episode(1, split=Split.HELDOUT))
    assert ledger.episode_row("e1") is None


# patterns, candidates, verdicts


def test_patterns_of_an_iteration_are_replaced_as_a_whole(ledger):
    """Saving again after a resume leaves no old pattern behind; the best supported comes first."""

    def pattern(name, *tasks):
        return Pattern(
            pattern_id=name,
            environment="household",
            failure_class=FailureClass.ACTION,
            signature=f"unknown_value:{name}",
            title="t",
            tasks=tasks,
            counter_support=1,
            excerpt="x",
        )

    ledger.save_patterns("r1", 1, [pattern("p1", "t1", "t2"), pattern("gone", "t9")])
    ledger.save_patterns("r1", 1, [pattern("p1", "t1", "t2"), pattern("p2", "t1", "t2", "t3")])
    ledger.save_patterns("r1", 2, [pattern("p1", "t2", "t3")])
    assert [entry.pattern.pattern_id for entry in ledger.patterns("r1", 1)] == ["p2", "p1"]
    assert [(entry.iteration, entry.pattern.tasks) for entry in ledger.patterns("r1", 2)] == [(2, ("t2", "t3"))]


@pytest.mark.parametrize(
    ("decision", "state", "review"),
    [
        (Decision.ACCEPT, CandidateState.ACCEPTED, Review.WAITING),
        (Decision.REJECT, CandidateState.REJECTED, Review.NONE),
        (Decision.CANNOT_TELL, CandidateState.CANNOT_TELL, Review.NONE),
    ],
)
def test_a_candidate_goes_from_proposed_over_testing_to_the_gates_word(ledger, decision, state, review):
    """Each step is visible, and only an accepted candidate waits for a person."""
    ledger.add_candidate(candidate())
    ledger.add_candidate(candidate())
    assert ledger.candidate("r1-c01").state is CandidateState.PROPOSED
    ledger.mark_testing("r1-c01")
    assert ledger.candidate("r1-c01").state is CandidateState.TESTING
    ledger.save_verdict(verdict(decision))
    ledger.save_verdict(verdict(decision))
    ledger.mark_testing("r1-c01")
    entry = ledger.candidate("r1-c01")
    assert (entry.state, entry.review, entry.verdict) == (state, review, verdict(decision))
    assert entry.candidate == candidate()
    assert ledger.candidates("r1") == [entry]


def test_a_second_verdict_or_another_candidate_under_the_same_id_is_refused(ledger):
    """The gate speaks once, and an id or a number means one candidate."""
    ledger.add_candidate(candidate())
    ledger.save_verdict(verdict(Decision.REJECT))
    with pytest.raises(StoreError, match="not the one that was written down"):
        ledger.save_verdict(verdict(Decision.ACCEPT))
    with pytest.raises(StoreError, match="another content"):
        ledger.add_candidate(candidate(commit="d" * 40))
    with pytest.raises(StoreError, match="UNIQUE"):
        ledger.add_candidate(candidate(candidate_id="r1-other"))
    assert ledger.candidate("r1-c01").state is CandidateState.REJECTED


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE verdicts SET record = replace(record, '0.125', '0.625')",
        "UPDATE verdicts SET decision = 'reject'",
        "UPDATE verdicts SET effect = 0.9",
    ],
)
def test_a_verdict_changed_by_hand_is_noticed(path, ledger, change):
    """Evidence that does not match its digest is never shown as the gate's word."""
    ledger.add_candidate(candidate())
    ledger.save_verdict(verdict())
    tamper(path, change)
    with pytest.raises(StoreError, match="not the one that was written down"):
        ledger.verdict("r1-c01")


def test_the_first_result_of_a_stage_stands(ledger):
    """A stage that is run again after a crash does not change what was decided on."""
    ledger.add_candidate(candidate())
    scope = StageResult(stage="scope", outcome="pass")
    lint = StageResult(stage="lint", outcome="reject", reasons=("a task id",), numbers={"n": 1})
    assert ledger.save_stage("r1-c01", scope) == scope
    ledger.save_stage("r1-c01", lint)
    assert ledger.save_stage("r1-c01", StageResult(stage="scope", outcome="reject")) == scope
    assert ledger.stages("r1-c01") == [scope, lint]


def test_review_follows_the_gates_word(ledger):
    """Only an accepted candidate can be taken or refused; taken is final and known by its commit."""
    ledger.add_candidate(candidate())
    with pytest.raises(UserError, match="word is proposed"):
        ledger.take("r1-c01", "f" * 40)
    ledger.save_verdict(verdict())
    ledger.refuse("r1-c01")
    assert ledger.candidate("r1-c01").review is Review.REFUSED
    ledger.take("r1-c01", "f" * 40)
    ledger.take("r1-c01", "f" * 40)
    with pytest.raises(UserError, match="taken already, as commit fff"):
        ledger.take("r1-c01", "e" * 40)
    with pytest.raises(UserError, match="taken already"):
        ledger.refuse("r1-c01")
    assert ledger.candidate("r1-c01").taken_commit == "f" * 40


def test_predictions_are_settled_task_by_task(ledger):
    """What a proposer promised is kept beside what happened; the unmeasured stays open."""
    ledger.add_candidate(candidate())
    ledger.settle_predictions("r1-c01", {"t1": True, "t3": False, "unrelated": True})
    told = [(found.kind, found.task_id, found.came_true) for found in ledger.predictions("r1-c01")]
    assert told == [("at_risk", "t3", False), ("fixed", "t1", True), ("fixed", "t2", None)]


def test_guard_uses_are_counted_once_per_candidate_and_stage(ledger):
    """The wear of the guard tasks is known across the runs of an environment."""
    ledger.add_candidate(candidate(1))
    ledger.add_candidate(candidate(2))
    for use in [("r1-c01", "paired_test"), ("r1-c01", "paired_test"), ("r1-c02", "paired_test")]:
        ledger.record_guard_use(*use)
    assert ledger.guard_uses("household") == 2
    assert ledger.guard_uses("service_desk") == 0


# the held-out seal


@pytest.fixture
def sealed(ledger):
    ledger.save_freeze(FROZEN)
    return ledger


def test_a_look_is_on_the_disk_before_it_is_given_out(path, sealed):
    """Another reader sees the look while it is still open, and its result when it is closed."""
    look = sealed.open_look(**LOOK)
    with Ledger(path, is_read_only=True) as reader:
        assert [(entry.look, entry.result) for entry in reader.looks()] == [(look, None)]
    sealed.close_look(look.look_id, {"score": 0.5})
    sealed.close_look(look.look_id, {"score": 0.5})
    (entry,) = sealed.looks("household")
    assert (entry.look, entry.result) == (look, {"score": 0.5})
    assert entry.closed_at > look.opened_at
    with pytest.raises(SealError, match="another result"):
        sealed.close_look(look.look_id, {"score": 0.9})


def test_looks_at_the_same_harness_are_numbered(sealed):
    """A second look with the same harness is the second, on whatever model; another harness begins at one."""
    sealed.save_freeze(FROZEN.model_copy(update={"name": "v2", "harness": "g" * 64}))
    looks = [sealed.open_look(**{**LOOK, "model": model}) for model in ("m1", "m2")]
    other = sealed.open_look(**{**LOOK, "frozen_name": "v2", "harness": "g" * 64})
    assert [look.number for look in [*looks, other]] == [1, 2, 1]
    assert len({look.look_id for look in [*looks, other]}) == 3


@pytest.mark.parametrize("change", [{"frozen_name": "v9"}, {"harness": "x"}, {"environment": "service_desk"}])
def test_a_harness_that_is_not_frozen_here_gets_no_look(sealed, change):
    """A lost ledger, another name and another digest all end in a refusal."""
    with pytest.raises(SealError, match="knows no frozen harness"):
        sealed.open_look(**{**LOOK, **change})
    assert sealed.looks() == []


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE looks SET number = 1 WHERE position = 2",
        "UPDATE looks SET result = '{\"score\": 0.9}' WHERE kind = 'close'",
        "DELETE FROM looks WHERE position = 0",
        "DELETE FROM looks WHERE position = 1",
        "DELETE FROM looks WHERE position = 2",
        "DELETE FROM looks",
        "DELETE FROM ledger_info WHERE key = 'end_of_looks'",
        "INSERT INTO looks SELECT 3, 'open', 'x', environment, frozen_name, harness, model, 3, at, result, "
        "digest, digest FROM looks WHERE position = 2",
    ],
)
def test_a_deleted_or_altered_look_closes_the_seal(path, sealed, change):
    """After tampering no look is listed, opened or closed."""
    first = sealed.open_look(**LOOK)
    sealed.close_look(first.look_id, {"score": 0.5})
    second = sealed.open_look(**LOOK)
    tamper(path, change)
    for attempt in (sealed.looks, lambda: sealed.open_look(**LOOK), lambda: sealed.close_look(second.look_id, {})):
        with pytest.raises(SealError, match="not as evolve wrote them"):
            attempt()


def test_heldout_episodes_belong_to_an_open_look(sealed):
    """They are kept apart from runs, and a closed look takes no more of them."""
    heldout, place = episode(1, split=Split.HELDOUT), ("household/heldout/off.jsonl", 0, "", Purpose.EVALUATION)
    with pytest.raises(SealError, match="no open look"):
        sealed.record_look_episodes([EpisodeUse(heldout, *place)], look_id="look-none")
    look = sealed.open_look(**LOOK)
    with pytest.raises(SealError, match="no held-out episode"):
        sealed.record_look_episodes([EpisodeUse(episode(2), *place)], look_id=look.look_id)
    sealed.record_look_episodes([EpisodeUse(heldout, *place)], look_id=look.look_id)
    sealed.record_look_episodes([EpisodeUse(heldout, *place)], look_id=look.look_id)
    assert [row.episode_id for row in sealed.look_episodes(look.look_id)] == ["e1"]
    assert sealed.episodes("r1") == []
    sealed.close_look(look.look_id, {})
    with pytest.raises(SealError, match="no open look"):
        sealed.record_look_episodes([EpisodeUse(heldout, *place)], look_id=look.look_id)


def test_a_frozen_name_means_one_harness(sealed):
    """Freezing again is done already; the name cannot be moved."""
    sealed.save_freeze(FROZEN)
    assert sealed.freezes("household") == [FROZEN]
    with pytest.raises(SealError, match="frozen already"):
        sealed.save_freeze(FROZEN.model_copy(update={"harness": "g" * 64}))


# the file


def test_a_ledger_of_a_newer_evolve_is_not_touched(path, ledger):
    """An unknown schema is refused with the way out."""
    ledger.close()
    tamper(path, "UPDATE ledger_info SET value = '99' WHERE key = 'schema_version'")
    with pytest.raises(StoreError, match="schema 99, written by a newer evolve"):
        Ledger(path)


def test_a_ledger_whose_version_is_no_number_is_damaged(path, ledger):
    """It is said as of any damage, to those who write and to those who read."""
    ledger.close()
    tamper(path, "UPDATE ledger_info SET value = 'x' WHERE key = 'schema_version'")
    for is_read_only in (False, True):
        with pytest.raises(StoreError, match="has schema 'x'; the file is damaged; restore it from a copy"):
            Ledger(path, is_read_only=is_read_only)


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"", "was truncated"), (b"not a database, but a text of some length" * 100, "no SQLite database")],
)
def test_an_empty_or_foreign_file_is_no_new_ledger(tmp_path, content, message):
    """A ledger that lost its content is never begun anew in silence."""
    path = tmp_path / "ledger.db"
    path.write_bytes(content)
    with pytest.raises(StoreError, match=message):
        Ledger(path)
    assert path.read_bytes() == content


def test_the_database_of_another_program_is_refused(tmp_path):
    """Tables of others are not taken for a ledger."""
    tamper(tmp_path / "other.db", "CREATE TABLE theirs (x)")
    with pytest.raises(StoreError, match="another program"):
        Ledger(tmp_path / "other.db")


def test_a_truncated_ledger_says_so(path, ledger):
    """A file that lost its second half is reported as damaged, with the file's name."""
    for number in range(50):
        record(ledger, episode(number))
    ledger.close()
    os.truncate(path, path.stat().st_size // 2 // 4096 * 4096)
    with pytest.raises(StoreError, match=r"ledger\.db: .*the file is damaged; restore"), Ledger(path) as damaged:
        damaged.episodes("r1")


def test_a_ledger_held_by_another_program_is_reported_after_the_wait(path, ledger):
    """A write that cannot have its turn ends in a sentence, and nothing is half written."""
    with Ledger(path, busy_timeout_s=0.1) as impatient:
        holder = sqlite3.connect(path, isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match=r"ledger\.db: another program holds it; close"):
            impatient.finish_run("r1", RunStatus.DONE)
        holder.execute("ROLLBACK")
        holder.close()
        impatient.finish_run("r1", RunStatus.DONE)
    assert ledger.run("r1").status is RunStatus.DONE


def test_a_full_disk_loses_nothing_that_was_recorded(path, ledger):
    """The write fails with a sentence that says so; earlier rows stay readable."""
    record(ledger, episode(1))
    with ledger._reading() as session:
        session.connection().exec_driver_sql("PRAGMA max_page_count = 1")
    large = episode(2, family="x" * 100_000)
    with pytest.raises(StoreError, match=r"ledger\.db: the disk is full; free some space"):
        record(ledger, large)
    with Ledger(path, is_read_only=True) as reader:
        assert [row.episode_id for row in reader.episodes("r1")] == ["e1"]


def test_a_ledger_opened_for_reading_changes_nothing(path, ledger):
    """Inspection works beside a writer, cannot write, and makes no file."""
    with Ledger(path, is_read_only=True) as reader:
        record(ledger, episode(1))
        assert [row.episode_id for row in reader.episodes("r1")] == ["e1"]
        with pytest.raises(StoreError, match="for reading only"):
            reader.finish_run("r1", RunStatus.DONE)
    with pytest.raises(StoreError, match="does not exist yet"):
        Ledger(path.with_name("none.db"), is_read_only=True)
    assert not path.with_name("none.db").exists()


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("sqlite://", "in memory"),
        ("nonsense://x/y", r"no driver for nonsense; pip install 'evolve-harness\[postgresql\]'"),
        ("a b://", "no database address"),
        ("postgresql://me:hush@host:port/x", "no database address"),
    ],
)
def test_an_address_that_means_no_ledger_says_why(url, message):
    """The message names what to write instead, and tells no password."""
    with pytest.raises(ConfigError, match=message) as caught:
        Ledger(url)
    assert "hush" not in str(caught.value)


WRITE = """
import sys
from pathlib import Path
from evolve.records import Episode
from evolve.store import EpisodeUse, Purpose
from evolve.store.ledger import Ledger
shape = Episode.model_validate_json(sys.stdin.read())
with Ledger(Path(sys.argv[1])) as ledger:
    ledger.start_run("r1", environment="household", model="m" * 64, base_commit="b" * 40, config={"trials": 3})
    for n in range(int(sys.argv[3])):
        episode = shape.model_copy(update={"episode_id": f"{sys.argv[2]}-{n}"})
        ledger.record_episodes([EpisodeUse(episode, "f", n, "", Purpose.BASELINE)], run_id="r1")
        print(episode.episode_id, flush=True)
"""


def start_writer(path, name, count):
    command = [sys.executable, "-c", WRITE, str(path), name, str(count)]
    writer = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    writer.stdin.write(episode().model_dump_json())
    writer.stdin.close()
    return writer


def test_two_processes_that_begin_a_ledger_at_once_lose_nothing(path):
    """Both find the same new ledger and every episode of both is in it."""
    writers = [start_writer(path, name, 20) for name in "ab"]
    for writer in writers:
        with writer:
            writer.stdout.read()
    assert [writer.returncode for writer in writers] == [0, 0]
    with Ledger(path, is_read_only=True) as ledger:
        assert {row.episode_id for row in ledger.episodes("r1")} == {f"{x}-{n}" for x in "ab" for n in range(20)}
    assert [file.name for file in path.parent.iterdir() if file.name.endswith(".new")] == []


def test_kill_9_loses_no_acknowledged_episode(path):
    """What was acknowledged is there after the kill, at most one more is, and the run goes on."""
    with start_writer(path, "k", 100_000) as writer:
        acknowledged = [writer.stdout.readline().strip() for _ in range(30)]
        writer.send_signal(signal.SIGKILL)
        acknowledged += writer.stdout.read().split("\n")[:-1]
    with Ledger(path) as ledger:
        found = {row.episode_id for row in ledger.episodes("r1")}
        assert set(acknowledged) <= found
        assert len(found) <= len(acknowledged) + 1
        record(ledger, episode(1))
        assert ledger.totals("r1").episodes == len(found) + 1


def test_a_copy_of_a_closed_ledger_is_the_whole_ledger(path, ledger, tmp_path):
    """After closing, one file holds everything."""
    record(ledger, episode(1))
    ledger.close()
    shutil.copy(path, tmp_path / "copy.db")
    with Ledger(tmp_path / "copy.db") as copy:
        assert copy.episode_row("e1") is not None


def self_check(attempt=1, **changes):
    values = {"is_passed": True, "pairs": 40, "p": 0.5, "effect": 0.0, "pair_variance": 0.2, "reasons": ("Chance.",)}
    return SelfCheckEntry(run_id="r1", number=1, attempt=attempt, **values | changes)


def test_each_attempt_at_an_a_a_control_is_written_down_once(ledger):
    """The first result of an attempt stands; a further attempt is a further row."""
    first = ledger.save_self_check(self_check(is_passed=False))
    assert ledger.save_self_check(self_check(is_passed=True)) == first
    second = ledger.save_self_check(self_check(2))
    assert ledger.self_checks("r1") == [first, second]
    assert ledger.self_checks("r2") == []


def test_a_ledger_that_lacks_a_table_gets_it_when_it_is_written_to(path):
    """An older ledger reads as one without controls, and takes them once it was opened for writing."""
    with Ledger(path) as ledger:
        ledger.start_run("r1", environment="household", model="m" * 64, base_commit="b" * 40, config={})
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TABLE self_checks")
    with Ledger(path, is_read_only=True) as ledger:
        assert ledger.self_checks("r1") == []
    with Ledger(path) as ledger:
        ledger.save_self_check(self_check())
        assert ledger.self_checks("r1") == [self_check()]
