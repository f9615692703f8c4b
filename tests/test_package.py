"""What an installation consists of, and the commands that a newcomer and CI type."""

import importlib
import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from evolve.environments.data import Benchmark
from evolve.resources import resource

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
WHEEL = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]
MAKEFILE = (ROOT / "Makefile").read_text("utf-8")
POINTS = [
    *PROJECT["project"]["scripts"].values(),
    *(target for group in PROJECT["project"]["entry-points"].values() for target in group.values()),
]


@pytest.mark.parametrize(("source", "target"), WHEEL["force-include"].items())
def test_what_the_wheel_takes_along_is_found_at_run_time(source: str, target: str) -> None:
    """Prompts, seed harnesses and recordings of the checkout are found by the names that they get in a wheel."""
    assert target.startswith("evolve/_resources/")
    assert resource(target.removeprefix("evolve/_resources/")) == ROOT / source


@pytest.mark.parametrize("target", POINTS)
def test_entry_points_lead_somewhere(target: str) -> None:
    """The command, the environments and the benchmarks are where the entry points say."""
    module, _, name = target.partition(":")
    found = getattr(importlib.import_module(module), name)
    assert callable(found) or isinstance(found, Benchmark)


def test_make_lists_every_target() -> None:
    """`make` alone names each target with what it does."""
    targets = re.search(r"^\.PHONY: (.*)$", MAKEFILE, re.MULTILINE)
    assert targets is not None
    said = subprocess.run(["make", "--silent"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert re.findall(r"^  make (\w+) +\S", said, re.MULTILINE) == targets[1].split()


def test_ci_runs_what_the_readme_names() -> None:
    """CI calls the README's test command, the checks and the self-test, by targets that there are."""
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    subprocess.run(["bash", "-n", str(script)], check=True)
    called = re.findall(r"^step \d+ make (\w+)", script.read_text("utf-8"), re.MULTILINE)
    assert called == ["test", "check", "selftest"]
    assert all(re.search(rf"^{target}:", MAKEFILE, re.MULTILINE) for target in called)
    assert "    make test " in (ROOT / "README.md").read_text("utf-8")
    assert sum(map(int, re.findall(r"^step (\d+)", script.read_text("utf-8"), re.MULTILINE))) < 20 * 60
