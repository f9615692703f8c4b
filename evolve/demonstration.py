"""What the demo does: run, accept, freeze, evaluate and report on one built-in environment, in a workspace of its own.

Completions come from recordings of a real local model, or from such a model itself. Whichever it is stands in the
record of what was found.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from itertools import takewhile
from pathlib import Path

from evolve.clock import clock_of
from evolve.config import Config, Loaded, load_config
from evolve.environments.installed import make_environment
from evolve.errors import UserError
from evolve.evaluate import ArmResult, Evaluation, evaluate
from evolve.freeze import freeze_head
from evolve.holding import hold_workspace, open_ledger
from evolve.loop.accept import take_all
from evolve.loop.session import run_session
from evolve.models.settings import SHIPPED
from evolve.progress import Progress
from evolve.records import Decision, FrozenHarness, Record
from evolve.report import Report, build, write_html
from evolve.repository import open_repository
from evolve.resources import resource
from evolve.traces import Traces
from evolve.workspace import Workspace

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


def recorded_environments() -> list[str]:
    """Return the environments that a recording is shipped for."""
    recordings = resource("recordings")
    return [name for name in ENVIRONMENTS if (recordings / f"{name}.jsonl.xz").is_file()]


def demo_config(
    workspace: Workspace, environment: str, *, model_path: Path | None, environ: Mapping[str, str]
) -> Loaded:
    """Return the demo's settings for one environment.

    Args:
        model_path: a GGUF file to ask for real; None replays the recording.
    """
    flags = {f"model.{key}": value for key, value in _model(environment, model_path).items()}
    flags["environment"] = environment
    settings = resource(f"recordings/{environment}.toml")
    return load_config(workspace.root, file=settings, environ=environ, flags=flags)


def demo_settings(environment: str, *, model_path: Path | None = None) -> str:
    """Return the demo's settings as the text of a TOML file, so that what it does can be done step by step.

    Args:
        model_path: as in `demo_config`.

    Raises:
        UserError: none come with evolve for this environment.
    """
    if environment not in recorded_environments():
        known = " and ".join(recorded_environments())
        raise UserError(f"no recording of {environment} comes with evolve; there are those of {known}")
    shipped = resource(f"recordings/{environment}.toml").read_text("utf-8")
    lines = [f"{key} = {json.dumps(value)}" for key, value in _model(environment, model_path).items()]
    before, section, after = shipped.partition("[model]\n")
    header = "".join(takewhile(lambda line: line.startswith("#"), before.splitlines(keepends=True)))
    first = f"schema_version = 1\nenvironment = {json.dumps(environment)}\n"
    return header + first + before.removeprefix(header) + section + "\n".join(lines) + "\n" + after


def _model(environment: str, model_path: Path | None) -> dict[str, str]:
    """Return what tells a live demo from a recorded one, under [model]."""
    if model_path is None:
        return {"kind": "recorded", "recording": f"{SHIPPED}{environment}"}
    return {"kind": "local", "path": str(model_path.resolve()), "chat_template": str(resource(TEMPLATE))}


async def demonstrate(
    workspace: Workspace,
    settings: Loaded,
    *,
    environ: Mapping[str, str],
    watch: Callable[[], AbstractContextManager[Progress]],
    say: Callable[[str], None],
) -> tuple[Evaluation, EnvironmentDocument]:
    """Go the whole way in one environment; return the held-out evaluation and the record of all.

    Args:
        watch: opens what follows the run, and then the evaluation.
        say: is told of each candidate that became a commit.
    """
    config, options = settings.config, settings.told.as_json()
    with watch() as progress:
        ran = await run_session(workspace, config, resume=None, options=options, environ=environ, progress=progress)
    frozen = _accept_and_freeze(workspace, config, ran.entry.run_id, environ, say)
    with watch() as progress:
        result = await evaluate(workspace, config, name=VERSION_NAME, environ=environ, progress=progress)
    page = workspace.reports / f"{ran.entry.run_id}.html"
    with open_ledger(workspace, config, is_read_only=True) as ledger, open_repository(workspace.root) as repository:
        report = build(ledger, repository, Traces(workspace.traces), ran.entry.run_id)
    write_html(report, page)
    return result, _document(result, report, page, frozen.tag)


def _accept_and_freeze(
    workspace: Workspace, config: Config, run_id: str, environ: Mapping[str, str], say: Callable[[str], None]
) -> FrozenHarness:
    options, date = config.environments.get(config.environment, {}), clock_of(environ)()
    with hold_workspace(workspace, config, environ) as held:
        take_all(held.repository, held.ledger, run_id, date=date, say=say)
        made = make_environment(config.environment, options)
        return freeze_head(held.repository, held.ledger, made, options, name=VERSION_NAME, date=date)


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
