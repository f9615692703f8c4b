"""Makes the objects of a run from a configuration and hands them to each other. Decides nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from evolve.archive import Archive, Keeper
from evolve.canaries import Canaries, planted_variables, run_canaries
from evolve.config import Config
from evolve.environments.installed import make_environment
from evolve.errors import ConfigError
from evolve.harness.worker import WorkerPool
from evolve.lock import WorkspaceLock
from evolve.models.budget import Budget
from evolve.models.cache import CachedModel, CompletionCache
from evolve.models.create import create_model
from evolve.models.watched import WatchedModel
from evolve.progress import Progress
from evolve.protocols import Environment, Model
from evolve.records import Usage
from evolve.repository import Repository, finish_landing, open_repository, remove_stale_locks
from evolve.rollout import Rollout, RolloutLimits
from evolve.seal import require_unused, require_whole
from evolve.secrets import private_memory, secret_values
from evolve.store import Ledger
from evolve.store.connection import utc_now
from evolve.store.engine import sqlite_path
from evolve.traces import Traces
from evolve.workspace import Workspace


def clock_of(environ: Mapping[str, str]) -> Callable[[], datetime]:
    """Return the clock of the ledger. SOURCE_DATE_EPOCH stops it, so that equal runs make equal commits.

    Raises:
        ConfigError: SOURCE_DATE_EPOCH is no whole number of seconds.
    """
    pinned = environ.get("SOURCE_DATE_EPOCH")
    if not pinned:
        return utc_now
    if not pinned.isascii() or not pinned.isdigit():
        raise ConfigError(f"SOURCE_DATE_EPOCH is {pinned!r}; it is a whole number of seconds since 1970, or not set")
    moment = datetime.fromtimestamp(int(pinned), UTC)
    return lambda: moment


@contextmanager
def open_ledger(
    workspace: Workspace,
    config: Config,
    *,
    is_read_only: bool = False,
    clock: Callable[[], datetime] = utc_now,
) -> Iterator[Ledger]:
    """Open the ledger of a workspace; `clock` gives the time that it writes down."""
    url = config.ledger.url or workspace.ledger_url
    workspace.state.mkdir(exist_ok=True)
    with Ledger(url, is_read_only=is_read_only, clock=clock) as ledger:
        yield ledger


@contextmanager
def read_ledger(workspace: Workspace, config: Config) -> Iterator[Ledger | None]:
    """Open the ledger for reading; None where no run has made one yet.

    Raises:
        SealError: git shows that one was made, and it is gone.
    """
    if not _has_ledger(workspace, config):
        with open_repository(workspace.root) as repository:
            require_unused(repository)
        yield None
        return
    with open_ledger(workspace, config, is_read_only=True) as ledger:
        yield ledger


def _has_ledger(workspace: Workspace, config: Config) -> bool:
    """Tell whether a ledger is there, or was; of one in a database server only the server knows."""
    if not config.ledger.url:
        return workspace.has_ledger
    file = sqlite_path(config.ledger.url)
    return file is None or any(file.parent.glob(f"{file.name}*"))


@dataclass(frozen=True)
class Held:
    """A workspace held by nobody else: its repository, and its ledger open for writing."""

    repository: Repository
    ledger: Ledger


@contextmanager
def hold_workspace(workspace: Workspace, config: Config, environ: Mapping[str, str]) -> Iterator[Held]:
    """Take the workspace's lock, mend what a killed process left, and see that ledger and git agree.

    Args:
        environ: may stop the clock, as `clock_of` reads it.

    Raises:
        WorkspaceBusy: another process holds it.
        SealError: git shows something that the ledger does not know.
    """
    with hold_repository(workspace) as repository:
        if not _has_ledger(workspace, config):  # an empty one in its place would hide the loss
            require_unused(repository)
        with open_ledger(workspace, config, clock=clock_of(environ)) as ledger:
            require_whole(repository, ledger)
            yield Held(repository, ledger)


@contextmanager
def hold_repository(workspace: Workspace) -> Iterator[Repository]:
    """Take the workspace's lock and mend what a killed process left in its repository.

    Raises:
        WorkspaceBusy: another process holds it.
    """
    with WorkspaceLock(workspace.lock_file) as lock, open_repository(workspace.root, lock=lock) as repository:
        remove_stale_locks(repository, lock)
        finish_landing(repository)
        yield repository


@dataclass(frozen=True)
class Bench:
    """What a roll-out needs, opened and ready. `environ` holds the canary of the variables too."""

    environment: Environment
    model: CachedModel
    archive: Archive
    pool: WorkerPool
    canaries: Canaries
    environ: Mapping[str, str]


@asynccontextmanager
async def open_bench(
    workspace: Workspace,
    config: Config,
    ledger: Ledger,
    *,
    environ: Mapping[str, str],
    spent: Usage,
    payer: str = "",
    model: Model | None = None,
) -> AsyncIterator[Bench]:
    """Open environment, model, cache and worker pool, and close them in the right order.

    Meanwhile other processes of the user cannot look into this one, which holds keys and knows sealed tasks.

    Args:
        environ: where keys are read from; no worker and no proposer gets it.
        spent: what the ledger knows that the run had used before, against its budget.
        payer: the run; where the completion cache knows what it paid, unfinished episodes included, that counts.
        model: asked in place of the one that the configuration describes.
    """
    environment = make_environment(config.environment, config.environments.get(config.environment, {}))
    canaries = Canaries(run_canaries(environment.card.canary, ledger.canary))
    model = WatchedModel(
        model or create_model(config.model, environ=environ), canaries, seen_in="a request to the model"
    )
    traces = Traces(workspace.traces, secrets=secret_values(environ), canaries=canaries)
    archive = Archive(ledger, traces)
    try:
        with (
            private_memory(),
            planted_variables(environ, ledger.canary) as planted,
            CompletionCache(workspace.completions(model.fingerprint.digest)) as cache,
        ):
            budget = Budget(usd=config.budget.usd, tokens=config.budget.tokens, spent=cache.paid(payer, known=spent))
            cached = CachedModel(model, cache, budget=budget, payer=payer, price=config.model.price)
            isolation = config.harness
            async with WorkerPool(
                minimum_tier=isolation.isolation, call_timeout_s=isolation.call_timeout_s, canaries=canaries
            ) as pool:
                try:
                    yield Bench(environment, cached, archive, pool, canaries, planted)
                finally:
                    await cached.close()
    finally:
        await archive.close()


def make_rollout(bench: Bench, config: Config, keeper: Keeper, *, progress: Progress, stop: asyncio.Event) -> Rollout:
    """Make what plays episodes and gives them to a keeper, within the bounds that a configuration sets."""
    settings = config.rollout
    limits = RolloutLimits(
        concurrency=settings.concurrency,
        episode_timeout_s=settings.episode_timeout_s,
        retries=settings.retries,
        error_share=settings.error_share,
    )
    return Rollout(bench.environment, bench.model, keeper, limits=limits, progress=progress, stop=stop)
