"""Workspaces with real git and SQLite, and the command line called in this process."""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from evolve.cli.exits import run_command

SCRIPT = '{"tool": "take_action", "arguments": {"action": "look"}}\n{"text": "done"}\n'


@dataclass(frozen=True)
class Ended:
    """How a command ended: exit code, standard output, standard error."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """The one JSON document on standard output."""
        return json.loads(self.out)


Evolve = Callable[..., Ended]


@pytest.fixture
def evolve(capsys: pytest.CaptureFixture[str]) -> Evolve:
    """Run one command line and return how it ended."""

    def run(*arguments: str | Path) -> Ended:
        capsys.readouterr()
        code = run_command([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Ended(code, captured.out, captured.err)

    return run


@pytest.fixture(autouse=True)
def _clean_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "SOURCE_DATE_EPOCH", "EVOLVE_DEBUG"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session")
def _made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("made") / "workspace"
    assert run_command(["init", str(root)]) == 0
    (root / "script.jsonl").write_text(SCRIPT)
    (root / "my.toml").write_text(
        f'[model]\nkind = "scripted"\nscript = "{root / "script.jsonl"}"\n'
        "[environments.household]\ntrain = 4\nguard = 2\nheldout = 3\n"
    )
    return root


@pytest.fixture(scope="session")
def _played(_made: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("played") / "workspace"
    shutil.copytree(_made, root)
    assert run_command(["run", "-C", str(root), "--config", str(root / "my.toml"), "--iterations", "1"]) == 0
    return root


@pytest.fixture
def workspace(_made: Path, tmp_path: Path) -> Path:
    """A new workspace, with a scripted model in my.toml."""
    return Path(shutil.copytree(_made, tmp_path / "workspace"))


@pytest.fixture
def played(_played: Path, tmp_path: Path) -> Path:
    """A workspace with one finished run, whose one candidate was rejected."""
    return Path(shutil.copytree(_played, tmp_path / "played"))
