"""Programs that nobody watches: what they are given, and what becomes of them when evolve is paused or killed."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from evolve.proposers.headless import Finished, run_headless
from evolve.scratch import private_folder

HEADLESS = """
import asyncio, sys
from pathlib import Path
from evolve.proposers.headless import run_headless

asyncio.run(run_headless(
    [sys.executable, "-c", "import os, time; print(os.getpid(), flush=True); time.sleep(60)"], cwd=Path("."),
    environ={}, timeout_s=60, transcript=Path(sys.argv[1]), secrets=(),
    on_line=lambda line: print(int(line), flush=True),
))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux ends a child with its parent")
def test_a_program_ends_with_a_killed_evolve(tmp_path: Path) -> None:
    """Otherwise it would go on in a workspace that a resumed run hands to the next one."""
    command = [sys.executable, "-c", HEADLESS, str(tmp_path / "t.txt")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as evolve:
        assert evolve.stdout is not None
        agent = int(evolve.stdout.readline())
        evolve.kill()
    deadline = time.monotonic() + 10
    while is_running(agent) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not is_running(agent)


def test_a_program_that_ended_while_evolve_was_paused_is_no_timeout(tmp_path: Path) -> None:
    """Its work is done and paid for, whatever the clock says when evolve wakes."""

    def pause(line: bytes) -> None:
        time.sleep(1.5)

    async def story() -> Finished:
        program = [sys.executable, "-c", "print('at work', flush=True)"]
        transcript = tmp_path / "t.txt"
        return await run_headless(
            program, cwd=tmp_path, environ={}, timeout_s=1.0, transcript=transcript, secrets=(), on_line=pause
        )

    ended = asyncio.run(story())
    assert (ended.exit_code, ended.is_timeout) == (0, False)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_a_program_gets_the_signals_and_variables_that_it_was_given(tmp_path: Path) -> None:
    """A pipe whose reader is gone ends its writer, as in a shell; no variable is added."""
    said: list[bytes] = []

    async def story() -> Finished:
        script = "grep SigIgn /proc/self/status; env"
        where = {"cwd": tmp_path, "transcript": tmp_path / "t.txt", "environ": {"PATH": os.environ["PATH"], "A": "1"}}
        return await run_headless(["bash", "-c", script], timeout_s=20, secrets=(), on_line=said.append, **where)

    assert asyncio.run(story()).exit_code == 0
    lines = {line.decode().strip() for line in said if line}
    by_bash = {f"PWD={tmp_path}", "SHLVL=0", "SHLVL=1", "_=/usr/bin/env", "_=/bin/env"}
    (ignored,) = (line for line in lines if line.startswith("SigIgn:"))
    assert [one for one in (signal.SIGPIPE, signal.SIGXFSZ) if int(ignored.split()[1], 16) >> one - 1 & 1] == []
    assert lines - by_bash == {ignored, f"PATH={os.environ['PATH']}", "A=1"}


def test_a_program_that_cannot_be_run_is_named_in_one_line(tmp_path: Path) -> None:
    """Its interpreter is missing: no traceback of ours stands in the transcript."""
    agent = tmp_path / "agent"
    agent.write_text("#!/nowhere/at/all\n")
    agent.chmod(0o755)
    where = {"cwd": tmp_path, "environ": {}, "transcript": tmp_path / "t.txt"}
    ended = asyncio.run(run_headless([str(agent)], timeout_s=20, secrets=(), on_line=print, **where))
    assert (ended.exit_code, ended.last_line) == (126, f"{agent} cannot be started: No such file or directory")
    assert "Traceback" not in (tmp_path / "t.txt").read_text()


def test_a_private_folder_that_a_killed_evolve_left_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copied login may lie in it, and folders that cannot be written; one that is in use stays, and so do links."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    left, young = tmp_path / "agent-left", tmp_path / "agent-young"
    for folder in (left, young):
        (folder / "cache").mkdir(parents=True)
        (folder / "cache" / "login.json").write_text("{}")
    (left / "cache").chmod(0o555)
    (tmp_path / "agent-dangling").symlink_to(tmp_path / "nowhere")
    (tmp_path / "agent-link").symlink_to(tmp_path / "mine")
    (tmp_path / "mine").mkdir()
    with private_folder("agent-") as used:
        for folder in (left, used, tmp_path / "mine"):
            os.utime(folder, (0, 0))
        with private_folder("agent-") as folder:
            assert set(tmp_path.glob("agent-*")) == {
                *(young, used, folder, tmp_path / "agent-dangling", tmp_path / "agent-link")
            }
    assert (tmp_path / "mine").is_dir()


def is_running(process: int) -> bool:
    try:
        return ") Z " not in Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False
