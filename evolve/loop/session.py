"""One `evolve run` from taking the lock to the last row: opens everything, runs the loop, writes down how it ended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evolve.assembly import Bench, make_rollout, open_bench
from evolve.config import Config
from evolve.environments.installed import environment_maker
from evolve.errors import BudgetSpent, EvolveError, Interrupted, RulerChanged
from evolve.figures import parse_time
from evolve.holding import Held, hold_workspace
from evolve.loop.beginning import Start, deciding, which_run
from evolve.loop.context import RunContext
from evolve.loop.replay import Replayer
from evolve.loop.run import Outcome, run_loop
from evolve.loop.stopping import stop_signals
from evolve.progress import Progress, Said
from evolve.proposers.create import create_proposer
from evolve.protocols import Model
from evolve.records import Json, Usage
from evolve.ruler import Ruler, measure, require_unchanged
from evolve.seal import commit_heldout, commitment_sentence
from evolve.store import RunEntry, RunStatus
from evolve.workspace import Workspace

if TYPE_CHECKING:
    from evolve.store.ledger import Ledger


@dataclass(frozen=True)
class Ran:
    """A finished run: its row in the ledger and how its loop ended."""

    entry: RunEntry
    outcome: Outcome


async def run_session(
    workspace: Workspace,
    config: Config,
    *,
    resume: str | None,
    environ: Mapping[str, str],
    progress: Progress,
    options: Json | None = None,
    model: Model | None = None,
) -> Ran:
    """Start a run, or resume one.

    Args:
        resume: None starts a new run; "" resumes the latest unfinished one of the environment; else a run's id.
        options: what the command line told, before and now: kept for whoever resumes the run; None keeps what is kept.
        environ: where keys are read from, and SOURCE_DATE_EPOCH.
        model: asked in place of the one that the configuration describes.

    Raises:
        UserError: the workspace is not ready: dirty harness, nothing to resume, another configuration.
        RulerChanged, SealError: what it measures with, the held-out tasks or the ledger are not what they were.
        BudgetSpent, Interrupted, InfrastructureError: it ended early; the ledger says so and `--resume` goes on.
    """
    with hold_workspace(workspace, config, environ) as held:
        if workspace.stop_file.exists():
            workspace.stop_file.unlink(missing_ok=True)
            progress.report(Said("removed a STOP file that was left over; one put down from now on ends this run"))
        start = which_run(held, config, resume)
        held.lock.plays(start.run_id)
        if start.left_behind:
            progress.report(Said(_beside(start.left_behind, start)))
        spent = _spent(held.ledger, start.run_id)
        async with (
            open_bench(
                workspace, config, held.ledger, environ=environ, spent=spent, payer=start.run_id, model=model
            ) as bench,
            stop_signals(workspace, progress) as stop,
        ):
            entry = _enter(held.ledger, bench, config, start, options, progress)
            run = _context(entry, workspace, config, held, bench, progress=progress, stop=stop)
            outcome = await _run_to_its_end(run, start.base_commit)
        return Ran(held.ledger.run(start.run_id), outcome)


def _beside(old: RunEntry, start: Start) -> str:
    """Say that a new run begins although an old one is not done, and how to go on with that instead."""
    instead = f"To go on with {old.run_id}: stop, then --resume {old.run_id}"
    return f"{old.run_id} is not done; this begins {start.run_id}. {instead}"


def _enter(
    ledger: Ledger, bench: Bench, config: Config, start: Start, options: Json | None, progress: Progress
) -> RunEntry:
    """Commit to the held-out split, and write the run down or compare it with what it was."""
    name = config.environment
    ledger.require_config(start.run_id, deciding(config))  # before anything is committed to
    committed = commit_heldout(ledger, bench.environment, config.environments.get(name, {}))
    progress.report(Said(commitment_sentence(name, committed)))
    return ledger.start_run(
        start.run_id,
        environment=name,
        model=bench.model.fingerprint.digest,
        base_commit=start.base_commit,
        config=deciding(config),
        options=options,
    )


def _context(
    entry: RunEntry,
    workspace: Workspace,
    config: Config,
    held: Held,
    bench: Bench,
    *,
    progress: Progress,
    stop: asyncio.Event,
) -> RunContext:
    """Write the ruler down or compare it, and put the parts of the run together."""
    measure_now = _measuring(config, bench)
    ruler = _ruler(held.ledger, entry.run_id, measure_now())
    replayer = Replayer(isolation=config.harness.isolation, step_limit=bench.environment.card.step_limit)
    proposer = create_proposer(
        workspace,
        config,
        environ=bench.environ,
        replay=replayer,
        canaries=bench.canaries,
        warn=lambda text: progress.report(Said(text, level="warning")),
    )
    return RunContext(
        run_id=entry.run_id,
        started_at=parse_time(entry.started_at),
        config=config,
        workspace=workspace,
        repository=held.repository,
        ledger=held.ledger,
        environment=bench.environment,
        pool=bench.pool,
        canaries=bench.canaries,
        ruler=ruler,
        measure=measure_now,
        rollout=make_rollout(bench, config, bench.archive.of_run(entry.run_id), progress=progress, stop=stop),
        proposer=proposer,
        replayer=replayer,
        progress=progress,
        stop=stop,
    )


def _measuring(config: Config, bench: Bench) -> Callable[[], Ruler]:
    """Return what measures the ruler; each call makes the environment anew, for what lies on the disk counts."""
    fingerprint = bench.model.fingerprint
    sections = config.model_dump(mode="json", include={"harness", "gate"})
    make, options = environment_maker(config.environment), config.environments.get(config.environment, {})
    return lambda: measure(make(options), model=fingerprint, **sections)


def _ruler(ledger: Ledger, run_id: str, now: Ruler) -> Ruler:
    """Return the ruler that the run began with; a resumed run must still have it."""
    then = Ruler.model_validate(ledger.save_ruler(run_id, now.model_dump(mode="json")).record)
    try:
        require_unchanged(run_id, then, now)
    except RulerChanged as error:
        ledger.finish_run(run_id, RunStatus.FAILED, str(error))
        raise
    return then


async def _run_to_its_end(run: RunContext, base_commit: str) -> Outcome:
    limit = run.config.budget.time_limit_s
    try:
        async with asyncio.timeout(limit):
            outcome = await run_loop(run, base_commit)
    except TimeoutError as error:
        spent = BudgetSpent(f"the time limit of {limit:g} s is used up; `evolve run --resume` goes on")
        run.ledger.finish_run(run.run_id, RunStatus.STOPPED, str(spent))
        raise spent from error
    except (BudgetSpent, Interrupted) as error:
        run.ledger.finish_run(run.run_id, RunStatus.STOPPED, str(error))
        raise
    except EvolveError as error:
        run.ledger.finish_run(run.run_id, RunStatus.FAILED, str(error))
        raise
    status = RunStatus.STOPPED if outcome.message else RunStatus.DONE
    run.ledger.finish_run(run.run_id, status, outcome.message or outcome.ending.value)
    return outcome


def _spent(ledger: Ledger, run_id: str) -> Usage:
    """Return what a resumed run had used; nothing for a new one."""
    known = {entry.run_id for entry in ledger.runs()}
    return ledger.totals(run_id).usage if run_id in known else Usage()
