"""A workspace on a read-only mount: it can be looked at, and what would write says why it cannot."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

UNSHARE = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-rm"]
SEALED = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"'
LOOKING = (("runs", "list"), ("traces", "list"), ("candidates", "diff", "1"))

Sealed = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def sealed(played: Path) -> Sealed:
    """Run a command in the workspace where its folder is mounted read-only."""

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [*UNSHARE, "bash", "-c", SEALED, str(played), *words]
        return subprocess.run(command, capture_output=True, text=True, check=False, cwd="/")

    try:
        probe = run("touch", str(played / "x"))
    except FileNotFoundError:
        pytest.skip("this system has no unshare")
    if "Read-only file system" not in probe.stderr:
        pytest.skip("nothing can be mounted read-only here")
    return run


def closed(root: Path) -> None:
    """Bring the ledger to the state in which its last writer leaves it: one file, with all in it."""
    with closing(sqlite3.connect(root / ".evolve/ledger.sqlite")) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert not list((root / ".evolve").glob("ledger.sqlite-[sw]*"))


def cut_off(root: Path) -> None:
    """Leave a change in the second file alone, and no third one, as a copy of a workspace in use does."""
    ledger, latest = root / ".evolve/ledger.sqlite", root / ".evolve/ledger.sqlite-wal"
    closed(root)
    with closing(sqlite3.connect(ledger, isolation_level=None)) as connection:
        connection.execute("UPDATE runs SET reason = 'in the second file'")
        kept = {file: file.read_bytes() for file in (ledger, latest)}
    for file, content in kept.items():
        file.write_bytes(content)
    assert b"in the second file" not in ledger.read_bytes()


@pytest.mark.parametrize("leave", [closed, cut_off])
def test_a_workspace_that_takes_no_file_can_be_inspected(evolve, played, sealed, leave, tmp_path):
    """Lists, a patch and the report say what they say elsewhere, whatever state the last writer left the ledger in."""
    leave(played)
    elsewhere = shutil.copytree(played, tmp_path / "elsewhere")
    there = [evolve(*words, "-C", elsewhere, "--json").document for words in LOOKING]
    assert ("in the second file" in str(there)) == (leave is cut_off)
    before = sorted(path.name for path in (played / ".evolve").iterdir())
    evolves = (sys.executable, "-m", "evolve")
    for words, document in zip(LOOKING, there, strict=True):
        ended = sealed(*evolves, *words, "-C", str(played), "--json")
        assert (ended.returncode, ended.stderr) == (0, ""), words
        assert json.loads(ended.stdout) == document
    report = sealed(*evolves, "report", "-C", str(played), "--html", str(tmp_path / "report.html"))
    assert (report.returncode, "household-001" in (tmp_path / "report.html").read_text()) == (0, True)
    assert sorted(path.name for path in (played / ".evolve").iterdir()) == before


def test_what_would_write_in_it_says_why_it_cannot(played, sealed):
    """A run and a report without a place of its own end with 4; the doctor has it as a finding that blocks a run."""
    closed(played)
    evolves = (sys.executable, "-m", "evolve")
    for words, told in (
        (("run", "--config", str(played / "my.toml")), f"{played}/.evolve/lock: the file system is read-only"),
        (("report",), "household-001.html: the file system is read-only; work in another folder (--html FILE names"),
    ):
        ended = sealed(*evolves, *words, "-C", str(played))
        assert (ended.returncode, told in ended.stderr, ended.stdout) == (4, True, ""), ended.stderr
    doctor = sealed(*evolves, "doctor", "--offline", "-C", str(played), "--json")
    lock = next(one for one in json.loads(doctor.stdout)["findings"] if one["name"] == "lock")
    assert (doctor.returncode, lock["blocks"]) == (2, True)
    assert "the file system is read-only" in lock["detail"]
