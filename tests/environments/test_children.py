"""Children host sessions in processes of their own and never outlive whoever holds them."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from evolve.environments.children import Child, ChildPool
from evolve.errors import EnvironmentBroken

PROGRAM = Path(__file__).parent / "toy_program.py"
PATIENCE_S = 30.0


@pytest.fixture
def pool() -> ChildPool:
    return ChildPool(PROGRAM, recycle_after=2, idle_limit=1)


def is_running(process_id: int) -> bool:
    """A zombie counts as running: it was not waited for."""
    return Path(f"/proc/{process_id}").exists()


def wait_for(is_so: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + PATIENCE_S
    while not is_so() and time.monotonic() < deadline:
        time.sleep(0.02)
    return is_so()


def test_an_answer_is_what_the_program_returned_whatever_it_printed(pool: ChildPool) -> None:
    """Prints of a program, in Python or below it, are never taken for an answer; any text comes through whole."""
    child = pool.take()
    question = {"text": "two\nlines, \ud800 and é"}
    assert child.ask(question, timeout_s=PATIENCE_S)["echo"] == question
    pool.give_back(child)
    pool.close()
    assert not is_running(child.process_id)


def test_a_child_sees_no_variable_of_its_host(pool: ChildPool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys in the host's environment are not handed on."""
    monkeypatch.setenv("SOME_API_KEY", "secret")
    child = pool.take()
    seen = child.ask({}, timeout_s=PATIENCE_S)["variables"]
    assert set(seen) <= {"PATH", "LANG", "LC_CTYPE", "PYTHONHASHSEED", "HOME", "TMPDIR"}
    child.end()


@pytest.mark.parametrize(
    ("act", "words"),
    [
        ("raise", "LookupError: the shelf is empty"),
        ("die", "the toy_program process died"),
        ("sleep", "did not answer within 1 s"),
        ("list", "is no JSON object"),
    ],
)
def test_a_child_that_breaks_is_the_environments_fault_and_is_not_used_again(
    pool: ChildPool, act: str, words: str
) -> None:
    """Raising, dying, hanging and nonsense are EnvironmentBroken, say what happened, and leave nothing behind."""
    child = pool.take()
    child.ask({}, timeout_s=PATIENCE_S)
    with pytest.raises(EnvironmentBroken, match=words):
        child.ask({"do": act}, timeout_s=1 if act == "sleep" else PATIENCE_S)
    pool.give_back(child)
    assert not is_running(child.process_id)
    assert not child.folder.exists()
    assert pool.take() is not child


def test_a_child_serves_a_few_sessions_and_is_then_replaced(pool: ChildPool) -> None:
    """A warm child is lent again until it has served as many sessions as it may."""
    first = pool.take()
    pool.give_back(first)
    assert pool.take() is first
    pool.give_back(first)
    assert not is_running(first.process_id)
    assert pool.take() is not first


def test_no_more_children_are_kept_warm_than_asked_for(pool: ChildPool) -> None:
    """Of two children given back one is kept, and one that died while it waited is not lent."""
    one, other = pool.take(), pool.take()
    pool.give_back(one)
    pool.give_back(other)
    assert is_running(one.process_id)
    assert not is_running(other.process_id)
    os.kill(one.process_id, signal.SIGKILL)
    assert wait_for(lambda: not one.is_alive)
    assert pool.take() is not one


def test_giving_back_a_child_that_still_computes_kills_it(pool: ChildPool) -> None:
    """A session that is closed in the middle of a step ends the step, and the waiting thread is told."""
    child = pool.take()
    with ThreadPoolExecutor() as threads:
        asked = threads.submit(child.ask, {"do": "sleep"}, timeout_s=PATIENCE_S)
        assert wait_for(lambda: child.is_asked)
        pool.give_back(child)
        with pytest.raises(EnvironmentBroken, match="died"):
            asked.result(timeout=PATIENCE_S)
    assert not is_running(child.process_id)


def test_sixteen_children_answer_at_once(pool: ChildPool) -> None:
    """Threads with a child each get their own answers."""

    def ask(number: int) -> tuple[object, int]:
        child = pool.take()
        seen = [child.ask({"number": number, "turn": turn}, timeout_s=PATIENCE_S) for turn in range(3)]
        child.end()
        assert {answer["echo"]["number"] for answer in seen} == {number}
        return number, seen[0]["process_id"]

    with ThreadPoolExecutor(16) as threads:
        answered = list(threads.map(ask, range(16)))
    assert len({process_id for _, process_id in answered}) == 16


def test_a_child_that_nobody_holds_is_killed() -> None:
    """Losing a child is no leak: neither process nor zombie nor folder stays."""
    child = Child(PROGRAM)
    child.ask({}, timeout_s=PATIENCE_S)
    process_id, folder = child.process_id, child.folder
    del child
    gc.collect()
    assert not is_running(process_id)
    assert not folder.exists()


@pytest.mark.parametrize("then", ["time.sleep(60)", "child.ask({'do': 'sleep'}, timeout_s=60)"], ids=["idle", "asked"])
def test_children_end_with_a_host_that_was_killed(then: str) -> None:
    """After `kill -9` of the host its children notice, in the middle of an answer as well, clean up and end."""
    host = (
        "import sys, time; from pathlib import Path; from evolve.environments.children import Child\n"
        f"child = Child(Path({str(PROGRAM)!r})); child.ask({{}}, timeout_s={PATIENCE_S})\n"
        f"print(child.process_id, child.folder, flush=True); {then}\n"
    )
    with subprocess.Popen([sys.executable, "-c", host], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process_id, folder = process.stdout.readline().split()
        process.kill()
    assert wait_for(lambda: not is_running(int(process_id)))
    assert wait_for(lambda: not Path(folder).exists())
