"""Files that a crash, a full disk or a person left damaged: forgiven where nothing is lost, else refused."""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from handmade import episode

from evolve.errors import StoreError
from evolve.models.cache import CompletionCache
from evolve.models.cached import CachedModel
from evolve.models.scripted import ScriptedModel, reply_text
from evolve.protocols import ModelRequest
from evolve.records import Completion, Usage
from evolve.store import RunStatus
from evolve.store.ledger import Ledger
from evolve.traces import Traces

KILLED = """
import os, signal, sys
from pathlib import Path
from evolve.store.ledger import Ledger
ledger = Ledger(Path(sys.argv[1]))
for number in range(3):
    ledger.start_run(f"r{number}", environment="household", model="m", base_commit="b", config={})
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """A ledger whose writer was killed: its last rows are in the -wal file alone."""
    path = tmp_path / "ledger.sqlite"
    ended = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    assert ended.returncode == -signal.SIGKILL
    assert path.with_name("ledger.sqlite-wal").stat().st_size > 0
    return path


def test_a_killed_writer_loses_no_row(killed: Path) -> None:
    """What was acknowledged before the kill is there afterwards."""
    with Ledger(killed) as ledger:
        assert [entry.run_id for entry in ledger.runs()] == ["r2", "r1", "r0"]


@pytest.mark.parametrize("is_read_only", [True, False])
def test_a_missing_wal_file_is_noticed(killed: Path, is_read_only: bool) -> None:
    """Without its -wal file a ledger is refused, also for reading, and the message says what to put back."""
    killed.with_name("ledger.sqlite-wal").unlink()
    with pytest.raises(StoreError, match=r"ledger\.sqlite has lost its last 3 changes: its -wal file was removed"):
        Ledger(killed, is_read_only=is_read_only)
    killed.with_name("ledger.sqlite-changes").unlink()  # as the message says
    with Ledger(killed) as ledger:
        assert ledger.runs() == []


def test_an_older_copy_is_noticed(tmp_path: Path) -> None:
    """A ledger that was put back to an earlier state is refused until the user says that it was meant."""
    path = tmp_path / "ledger.sqlite"
    for number in range(2):
        with Ledger(path) as ledger:
            ledger.start_run(f"r{number}", environment="household", model="m", base_commit="b", config={})
        if number == 0:
            shutil.copy(path, tmp_path / "copy")
    shutil.copy(tmp_path / "copy", path)
    with pytest.raises(StoreError, match=r"lost its last 1 changes.*remove .*ledger\.sqlite-changes"):
        Ledger(path)


def test_a_removed_ledger_is_not_begun_anew(killed: Path) -> None:
    """Where a ledger was, none is made in silence: looks would be forgotten."""
    killed.unlink()
    with pytest.raises(StoreError, match=r"is gone, and it had taken 3 changes: put it back"):
        Ledger(killed)
    assert not killed.exists()


def test_a_half_written_number_of_changes_locks_nobody_out(killed: Path) -> None:
    """The number beside the ledger only ever warns of a loss; torn itself it says nothing."""
    killed.with_name("ledger.sqlite-changes").write_bytes(b"  ")
    with Ledger(killed) as ledger:
        assert len(ledger.runs()) == 3


def test_what_repeats_itself_is_no_change(tmp_path: Path) -> None:
    """A write that finds its row there already makes no commit."""
    path = tmp_path / "ledger.sqlite"
    with Ledger(path) as ledger:
        ledger.start_run("r1", environment="household", model="m", base_commit="b", config={})
        before = path.with_name("ledger.sqlite-changes").read_text()
        ledger.save_patterns("r1", 1, [])
        assert path.with_name("ledger.sqlite-changes").read_text() == before


def test_a_long_reader_holds_nobody_up(killed: Path) -> None:
    """A program that reads the ledger for as long as it likes delays no write, and no end."""
    reader = sqlite3.connect(killed, isolation_level=None)
    reader.execute("BEGIN")
    assert reader.execute("SELECT count(*) FROM runs").fetchone() == (3,)
    begun = time.monotonic()
    with Ledger(killed, busy_timeout_s=30) as ledger:
        ledger.finish_run("r1", RunStatus.DONE)
    assert time.monotonic() - begun < 10
    assert reader.execute("SELECT count(*) FROM runs WHERE status = 'done'").fetchone() == (0,)
    reader.close()
    with Ledger(killed, is_read_only=True) as ledger:
        assert ledger.run("r1").status is RunStatus.DONE


def test_a_draft_of_a_dead_process_is_removed(tmp_path: Path) -> None:
    """A ledger that a kill left half made is swept away; one that is being made is not."""
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    left, living = (tmp_path / f".ledger.sqlite.{pid}.new" for pid in (dead.pid, os.getppid()))
    left.touch()
    left.with_name(f"{left.name}-journal").touch()
    living.touch()
    Ledger(tmp_path / "ledger.sqlite").close()
    assert [path for path in tmp_path.iterdir() if ".new" in path.name] == [living]


@contextmanager
def room_for(file: Path, more: int) -> Iterator[None]:
    """Let files grow to a little more than what one has now, as a disk that fills up in the middle of a write."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (file.stat().st_size + more, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_half_a_completion_is_taken_back(tmp_path: Path) -> None:
    """A line that the disk took half of is removed at once, so that the next one does not follow it."""
    path = tmp_path / "completions.jsonl"
    with CompletionCache(path) as cache:
        cache.put("k1", "e1", Completion(text="one"))
        with (
            room_for(path, 20),
            pytest.raises(StoreError, match=r"completions\.jsonl: a file reached the allowed size"),
        ):
            cache.put("k2", "e1", Completion(text="two"))
        cache.put("k3", "e1", Completion(text="three"))
    with CompletionCache(path) as cache:
        assert [key for key, _ in cache.entries()] == ["k1", "k3"]


def test_half_of_what_is_written_together_is_taken_back(tmp_path: Path) -> None:
    """Lines of which the disk took some and half of one are removed at once: none of them was acknowledged."""
    traces = Traces(tmp_path)
    first = traces.append(episode(task="t1"))
    file = tmp_path / first.path
    whole = file.read_bytes()
    lines = [traces.line_of(episode(task=f"lost-{n}")) for n in range(4)]
    room = len(lines[0].text) + 20
    with room_for(file, room), pytest.raises(StoreError, match=r"\.jsonl: a file reached the allowed size"):
        traces.append_lines(lines)
    assert file.read_bytes() == whole
    second = traces.append(episode(task="t3"))
    assert [found.task_id for _, found in traces.scan()] == ["t1", "t3"]
    assert traces.read(*second).task_id == "t3"


def test_what_unfinished_episodes_asked_counts_against_the_budget(tmp_path: Path) -> None:
    """A completion names the run that paid for it, so a resume after a kill knows what was spent to the last answer."""
    request = ModelRequest(messages=[{"role": "user", "content": "x"}], tools=[])
    usage = Usage(prompt_tokens=7, completion_tokens=2)
    model = ScriptedModel(lambda _: reply_text("y").model_copy(update={"usage": usage}), model_id="small")
    path = tmp_path / "completions.jsonl"
    with CompletionCache(path) as cache:
        asyncio.run(CachedModel(model, cache, payer="r1").complete(request, owner="never finished"))
        asyncio.run(CachedModel(model, cache, payer="r2").complete(request, owner="e2"))
    with CompletionCache(path) as cache:
        assert cache.paid("r1") == usage
        assert cache.paid("r2") == Usage()
        assert cache.paid("an old run", known=usage) == usage
