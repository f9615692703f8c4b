"""The demo: init, run, accept, freeze, evaluate and report, on the built-in environments, in one go.

Completions come from recordings of a real local model; `--live` asks such a model itself. Whichever it is
stands in everything that is shown.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

from evolve.assembly import clock_of
from evolve.cli.live import live_progress
from evolve.cli.output import say, table
from evolve.cli.place import Place, find_place, wait_for
from evolve.cli.reporting import report_of
from evolve.cli.running import accept_all
from evolve.cli.sealing import freeze_committed
from evolve.errors import UserError
from evolve.evaluate import ArmResult, Evaluation, evaluate
from evolve.loop.session import run_session
from evolve.records import Decision, Json, Record
from evolve.report import Report, write_html
from evolve.resources import resource
from evolve.workspace import start_workspace

ENVIRONMENTS = ("household", "service_desk")
VERSION_NAME = "demo"
TEMPLATE = "prompts/chat_templates/qwen2.5-coder-json.jinja"


class ArmDocument(Record):
    """One arm on the held-out tasks."""

    n: int
    successes: int
    rate: float
    ci95: tuple[float, float]


class EnvironmentDocument(Record):
    """What the demo found in one environment."""

    base: ArmDocument
    frozen: ArmDocument
    gain: float
    interval: tuple[float, float]
    candidates: dict[str, int]
    failure_classes: dict[str, int]
    harness_digest: str
    tag: str
    report_html: str


class DemoDocument(Record):
    """What `evolve demo --json` prints."""

    schema_version: int = 1
    model: str
    recorded: bool
    environments: dict[str, EnvironmentDocument]
    workspace: str
    report_html: str
    wall_s: float


def run_demo(into: Path | None, *, model_path: Path | None) -> DemoDocument:
    """Run the demo in a new workspace.

    Args:
        into: a new or empty folder; None makes a temporary one, which is kept.
        model_path: a GGUF file to ask for real; None replays the recordings.

    Raises:
        UserError: the folder is in use, or the model file is missing.
    """
    started = time.monotonic()
    if model_path is not None and not model_path.is_file():
        raise UserError(f"{model_path}: no such file; --live needs the GGUF file of a model")
    root = (into or Path(tempfile.mkdtemp(prefix="evolve-demo-"))).resolve()
    start_workspace(root, ENVIRONMENTS, date=clock_of(os.environ)())
    say(f"workspace: {root}")
    say(_about_completions(model_path))
    found = {name: _one_environment(root, name, model_path) for name in _playable(model_path)}
    first = next(iter(found.values()))
    return DemoDocument(
        model=first[0].model.model_id,
        recorded=model_path is None,
        environments={name: _document(*parts) for name, parts in found.items()},
        workspace=str(root),
        report_html=str(first[2]),
        wall_s=round(time.monotonic() - started, 1),
    )


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
            f"Workspace {document.workspace}: try `evolve candidates list`, `evolve traces list`, `git log` there.",
            *(f"Report {name}: {result.report_html}" for name, result in document.environments.items()),
            f"{document.wall_s:.0f} s. Live, with pip install 'evolve-harness[local]': "
            "`evolve demo --live --model FILE.gguf`.",
        ]
    )


def demo_place(root: Path, environment: str, model_path: Path | None) -> Place:
    """Return the demo's workspace with the demo's settings for one environment."""
    flags: Json = {"environment": environment, "model.chat_template": str(resource(TEMPLATE))}
    if model_path is None:
        recording = resource(f"recordings/{environment}.jsonl.xz")
        flags |= {"model.kind": "recorded", "model.recording": str(recording)}
    else:
        flags |= {"model.path": str(model_path.resolve())}
    return find_place(root, file=resource(f"recordings/{environment}.toml"), flags=flags)


def _one_environment(root: Path, name: str, model_path: Path | None) -> tuple[Evaluation, Report, Path, str]:
    place = demo_place(root, name, model_path)
    say(f"\n== {name} ==")
    with live_progress() as progress:
        run = run_session(place.workspace, place.config, resume=None, environ=place.environ, progress=progress)
        ran = wait_for(run)
    accept_all(place, ran.entry)
    frozen = freeze_committed(place, name, VERSION_NAME)
    with live_progress() as progress:
        result = wait_for(
            evaluate(place.workspace, place.config, name=VERSION_NAME, environ=place.environ, progress=progress)
        )
    report = report_of(place, ran.entry.run_id)
    page = place.workspace.reports / f"{ran.entry.run_id}.html"
    write_html(report, page)
    return result, report, page, frozen.tag


def _document(result: Evaluation, report: Report, page: Path, tag: str) -> EnvironmentDocument:
    decisions = [i.candidate.decision for i in report.iterations if i.candidate is not None]
    words = {"accepted": Decision.ACCEPT, "rejected": Decision.REJECT, "cannot_tell": Decision.CANNOT_TELL}
    return EnvironmentDocument(
        base=_arm_document(result.base),
        frozen=_arm_document(result.frozen),
        gain=result.gain,
        interval=result.interval,
        candidates={word: decisions.count(decision) for word, decision in words.items()},
        failure_classes={name.value: number for name, number in report.iterations[0].failure_classes.items()},
        harness_digest=result.look.harness,
        tag=tag,
        report_html=str(page),
    )


def _arm_document(arm: ArmResult) -> ArmDocument:
    return ArmDocument(n=arm.n, successes=arm.successes, rate=arm.rate, ci95=arm.ci95)


def _arm(arm: ArmDocument) -> str:
    return f"{arm.successes} of {arm.n} ({100 * arm.ci95[0]:.0f} to {100 * arm.ci95[1]:.0f}%)"


def _playable(model_path: Path | None) -> list[str]:
    """Return the environments that can be played: all of them live, else those that a recording is shipped for."""
    if model_path is not None:
        return list(ENVIRONMENTS)
    recordings = resource("recordings")
    names = [name for name in ENVIRONMENTS if (recordings / f"{name}.jsonl.xz").is_file()]
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
