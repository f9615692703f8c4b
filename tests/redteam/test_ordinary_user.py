"""What holds for root holds for an ordinary user too: run as root, the suite tries the attacks again as nobody."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

NOBODY = "65534"
HERE = Path(__file__).parent
USER_MATTERS = (
    *("test_proposer_sandbox.py", "test_proposer_intake.py", "test_sandbox_tier.py"),
    "test_this_machine.py",  # rule code too, and a look into evolve's memory
)
"""Where rights decide; attacks made of words alone are the same for everybody."""


def as_nobody(home: Path) -> list[str]:
    """Return what goes before a command so that it runs as nobody; what it needs may lie in root's home."""
    root_home = Path.home()
    shown: list[str] = []
    for place in (Path(sys.base_prefix), HERE.parents[1], Path(sys.prefix)):
        if place.is_relative_to(root_home):
            between = [path for path in reversed(place.parents) if path.is_relative_to(root_home) and path != root_home]
            shown += [part for path in between for part in ("--perms", "0755", "--dir", str(path))]
            shown += ["--ro-bind", str(place), str(place)]
    outer = ["bwrap", "--dev-bind", "/", "/", "--tmpfs", str(root_home), *shown, "--setenv", "HOME", str(home)]
    return [*outer, "--", "setpriv", "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", "--"]


@pytest.fixture
def home() -> Iterator[Path]:
    """Return a folder that nobody owns and can reach; pytest's own are root's alone."""
    with tempfile.TemporaryDirectory(prefix="evolve-nobody-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def test_the_attacks_fail_for_an_ordinary_user_too(home: Path) -> None:
    """The same tests, controls included, pass without any right that root has, and none of them is skipped."""
    if os.geteuid() != 0:
        pytest.skip("this suite runs as an ordinary user already")
    if not shutil.which("bwrap") or not shutil.which("setpriv"):
        pytest.skip("bwrap or setpriv is missing, which change the user")
    shutil.chown(home, int(NOBODY), int(NOBODY))
    files = [str(HERE / name) for name in USER_MATTERS]
    options = ["-q", "-p", "no:cacheprovider", "-o", "addopts=", f"--basetemp={home / 'tests'}"]
    command = [*as_nobody(home), sys.executable, "-B", "-m", "pytest", *options, *files]
    environ = {**os.environ, "TMPDIR": str(home), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    ended = subprocess.run(command, capture_output=True, text=True, cwd=HERE.parents[1], env=environ, timeout=600)
    assert ended.returncode == 0, ended.stdout[-6000:] + ended.stderr[-2000:]
    assert "skipped" not in ended.stdout
