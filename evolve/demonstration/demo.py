"""What the demo does: run, accept, freeze, evaluate and report on one built-in environment, in a workspace of its own.

Completions come from recordings of a real local model, or from such a model itself. Whichever it is stands in the
record of what was found.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path

from evolve.clock import clock_of
from evolve.config import Config, Loaded
from evolve.environments.installed import make_environment
from evolve.evaluate import evaluate
from evolve.freeze import freeze_head
from evolve.holding import hold_workspace, open_ledger
from evolve.loop.accept import take_all
from evolve.loop.session import run_session
from evolve.progress import Progress
from evolve.records import ArmResult, Decision, Evaluation, FrozenHarness, Record
from evolve.report import Report, build, write_html
from evolve.repository import open_repository
from evolve.traces import Traces
from evolve.workspace import Workspace

VERSION_NAME = "demo"


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
