"""Shows the demo: a new workspace, what goes on in it, and what was found. Which completions these are stands first."""

from __future__ import annotations

import os
import shlex
import tempfile
import time
from pathlib import Path

from evolve.cli.environ import with_dotenv
from evolve.cli.live import live_progress
from evolve.cli.output import say, table
from evolve.cli.place import wait_for
from evolve.clock import clock_of
from evolve.demonstration.demo import VERSION_NAME, ArmDocument, DemoDocument, EnvironmentDocument, demonstrate
from evolve.demonstration.settings import ENVIRONMENTS, demo_config, demo_settings, recorded_environments
from evolve.errors import Interrupted, UserError
from evolve.figures import percent
from evolve.named_files import require_file
from evolve.records import Evaluation
from evolve.workspace import Workspace, start_workspace


def run_demo(into: Path | None, *, model_path: Path | None) -> DemoDocument:
    """Run the demo in a new workspace.

    Args:
        into: a new or empty folder; None makes a temporary one, which is kept.
        model_path: a GGUF file to ask for real; None replays the recordings.

    Raises:
        UserError: the folder is in use, or the model file is missing.
    """
    started = time.monotonic()
    if model_path is not None:
        require_file("--model", model_path)
    root = (into or Path(tempfile.mkdtemp(prefix="evolve-demo-"))).resolve()
    names = _playable(model_path)
    settings = {settings_file(name): demo_settings(name, model_path=model_path).encode() for name in names}
    start_workspace(root, ENVIRONMENTS, date=clock_of(os.environ)(), further=settings)
    say(f"workspace: {root}")
    say(_about_completions(model_path))
    found = {name: _one_environment(Workspace(root), name, model_path) for name in names}
    evaluation, document = next(iter(found.values()))
    return DemoDocument(
        model=evaluation.model.model_id,
        recorded=model_path is None,
        environments={name: one for name, (_, one) in found.items()},
        workspace=str(root),
        report_html=document.report_html,
        wall_s=round(time.monotonic() - started, 1),
    )


def settings_file(environment: str) -> str:
    """Return the file in the demo's workspace that holds its settings for an environment."""
    return f"{environment}.toml"


def demo_text(document: DemoDocument) -> str:
    """Return what people read at the end."""
    rows = [
        [
            name,
            _arm(result.base),
            _arm(result.frozen),
            f"{100 * result.gain:+.0f} points ({100 * result.interval[0]:+.0f} to {100 * result.interval[1]:+.0f})",
            ", ".join(f"{number} {word}" for word, number in result.candidates.items()),
        ]
        for name, result in document.environments.items()
    ]
    head = ["held-out", "base (harness off)", "frozen", "gain (95% interval)", "candidates"]
    source = (
        f"All completions are RECORDED, of {document.model}; nothing was asked of a model."
        if document.recorded
        else f"All completions were asked of {document.model} just now."
    )
    return "\n".join(
        [
            table(head, rows),
            "",
            source,
            f"Workspace {document.workspace}: try `evolve candidates list`, `evolve traces list`, `git log` there "
            "(make keeps evolve in .venv/bin). What plays or freezes there needs the demo's settings, "
            f"--config {settings_file('service_desk')}, and a live model where it asks what nobody recorded.",
            *(f"Report {name}: {result.report_html}" for name, result in document.environments.items()),
            f"{document.wall_s:.0f} s. Live, with pip install 'evolve-harness[local]': "
            "`evolve demo --live --model FILE.gguf`.",
        ]
    )


def _one_environment(
    workspace: Workspace, name: str, model_path: Path | None
) -> tuple[Evaluation, EnvironmentDocument]:
    environ = with_dotenv(os.environ, workspace.root / ".env")
    settings = demo_config(workspace, name, model_path=model_path, environ=environ)
    say(f"\n== {name} ==")
    try:
        return wait_for(demonstrate(workspace, settings, environ=environ, watch=live_progress, say=say))
    except Interrupted as error:
        where = f"-C {shlex.quote(str(workspace.root))}"
        raise Interrupted(
            f"stopped; what was recorded is kept: `evolve runs list {where}`. An unfinished run goes on with "
            f"`evolve run --resume {where}`, a version that was frozen is evaluated by `evolve evaluate {VERSION_NAME} "
            f"--config {shlex.quote(str(workspace.root / settings_file(name)))} {where}`; `evolve demo` begins anew"
        ) from error


def _arm(arm: ArmDocument) -> str:
    return f"{arm.successes} of {arm.n} ({percent(arm.ci95[0], 0)} to {percent(arm.ci95[1], 0)})"


def _playable(model_path: Path | None) -> list[str]:
    """Return the environments that can be played: all of them live, else those that a recording is shipped for."""
    if model_path is not None:
        return list(ENVIRONMENTS)
    names = recorded_environments()
    for name in ENVIRONMENTS:
        if name not in names:
            say(f"{name}: no recording is shipped yet; it runs with --live")
    if not names:
        raise UserError("the installation lacks its recordings; install evolve-harness again, or use --live")
    return names


def _about_completions(model_path: Path | None) -> str:
    if model_path is not None:
        return f"completions: LIVE, from {model_path.name}"
    return "completions: RECORDED, of a real local model; no model is asked. `--live` asks one."
