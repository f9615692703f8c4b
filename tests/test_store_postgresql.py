"""The ledger on PostgreSQL."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from test_store import FROZEN, LOOK, RUN, candidate, episode, record, verdict

from evolve.errors import SealError, StoreError
from evolve.store import CandidateState
from evolve.store.ledger import Ledger

pytest.importorskip("psycopg", reason="the extra postgresql is not installed")


def test_a_run_with_its_episodes_candidate_and_verdict_comes_back(postgresql_url):
    """The same records come back from a server as from a file, offsets beyond 2 GB included."""
    with Ledger(postgresql_url) as ledger:
        ledger.start_run("r1", config={"trials": 3}, **RUN)
        record(ledger, episode(1), offset=3 * 2**30)
        record(ledger, episode(1), arm="r1-c01")
        ledger.add_candidate(candidate())
        ledger.save_verdict(verdict())
    with Ledger(postgresql_url, is_read_only=True) as ledger:
        assert ledger.episode_row("e1").trace_offset == 3 * 2**30
        assert ledger.totals("r1").requests_asked == 3
        entry = ledger.candidate("r1-c01")
        assert (entry.candidate, entry.state, entry.verdict) == (candidate(), CandidateState.ACCEPTED, verdict())


def test_looks_opened_at_once_are_numbered_one_after_another_and_sealed(postgresql_url):
    """Concurrent programs wait for each other at the chain, and tampering closes it."""

    def look(_):
        with Ledger(postgresql_url) as ledger:
            return ledger.open_look(**LOOK).number

    with Ledger(postgresql_url) as ledger:
        ledger.save_freeze(FROZEN)
        with ThreadPoolExecutor(6) as pool:
            assert sorted(pool.map(look, range(6))) == [1, 2, 3, 4, 5, 6]
        assert len(ledger.looks()) == 6
        with ledger._engine.begin() as connection:
            connection.exec_driver_sql("DELETE FROM looks WHERE position = 3")
        with pytest.raises(SealError, match="not as evolve wrote them"):
            ledger.looks()


def test_programs_that_record_the_same_episodes_at_once_all_succeed(postgresql_url):
    """Two runs with the same tasks, model and harness play the same episodes; each is written once, for both."""

    def run(number):
        with Ledger(postgresql_url) as ledger:
            ledger.start_run(f"same{number}", config={}, **RUN)
            for trial in range(20):
                record(ledger, episode(100 + trial), run_id=f"same{number}")
            return len(ledger.episodes(f"same{number}"))

    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(run, range(6))) == [20] * 6


def test_a_program_that_holds_the_ledger_is_waited_for_and_then_told_of(postgresql_url):
    """Another one's write under way keeps a writer waiting as long as it was told, and ends in words."""
    with Ledger(postgresql_url) as holding, Ledger(postgresql_url, busy_timeout_s=0.2) as other, holding.together():
        holding.start_run("early", config={}, **RUN)
        with pytest.raises(StoreError, match="another program holds it"):
            other.start_run("late", config={}, **RUN)


def test_a_server_that_cannot_be_reached_is_reported_without_the_password():
    """The message names the address and hides the secret."""
    with pytest.raises(StoreError, match=r"postgresql://u:\*\*\*@127\.0\.0\.1:1/x") as caught:
        Ledger("postgresql://u:hush@127.0.0.1:1/x")
    assert "hush" not in str(caught.value)
