"""One small run that accepts a candidate and rejects one, frozen and evaluated; all reports here are made from it."""

from __future__ import annotations

import asyncio

import pytest
import small_run
from reported import RUN, opened

from evolve.evaluate import evaluate
from evolve.freeze import freeze_harness
from evolve.progress import Silent
from evolve.report.build import build
from evolve.report.document import Report
from evolve.repository import run_branch
from evolve.workspace import Workspace


@pytest.fixture(scope="session")
def workspace(tmp_path_factory) -> Workspace:
    made = small_run.make_workspace(tmp_path_factory.mktemp("report") / "ws")
    small_run.run(made, "iterations=2")
    with opened(made) as (ledger, repository, _):
        freeze_harness(
            repository,
            ledger,
            environment="household",
            name="v1",
            commit=run_branch(RUN),
            manifest={"run": RUN},
            date=small_run.START,
        )
    look = evaluate(
        made,
        small_run.configured(),
        name="v1",
        environ=small_run.ENVIRON,
        progress=Silent(),
        model=small_run.scripted(),
    )
    asyncio.run(look)
    return made


@pytest.fixture(scope="session")
def report(workspace) -> Report:
    with opened(workspace) as (ledger, repository, traces):
        return build(ledger, repository, traces, RUN)


@pytest.fixture
def empty_report(report) -> Report:
    """The report of a run that a kill ended before its first episode."""
    nothing = {"episodes": 0, "requests": 0, "requests_asked": 0, "requests_reused": 0, "episode_wall_s": 0.0}
    return report.model_copy(
        update={
            "run": report.run.model_copy(update={"finished_at": None, "wall_s": None}),
            "totals": report.totals.model_copy(update=nothing),
            "iterations": (),
            "units": (),
            "looks": (),
            "freezes": (),
        }
    )
