"""Programs that nobody watches, when evolve is paused or killed beside them."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from evolve.proposers.headless import Finished, run_headless
from evolve.proposers.sandbox.enclosure import private_folder

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


def test_a_private_folder_that_a_killed_evolve_left_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copied login may lie in it; the folder of an evolve that runs stays."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    gone = subprocess.Popen(["true"])
    gone.wait()
    left, mine, other = (tmp_path / f"agent-{name}" for name in (f"{gone.pid}-x", f"{os.getpid()}-y", "notes"))
    for folder in (left, mine, other):
        folder.mkdir()
        (folder / "login.json").write_text("{}")
    with private_folder("agent-") as folder:
        assert sorted(tmp_path.iterdir()) == sorted([mine, other, folder])


def is_running(process: int) -> bool:
    try:
        return ") Z " not in Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False
