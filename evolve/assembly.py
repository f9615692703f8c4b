"""Makes the objects of a run from a configuration and hands them to each other. Decides nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evolve.archive import Archive, Keeper
from evolve.canaries import Canaries, planted_variables, run_canaries
from evolve.config import Config
from evolve.environments.installed import make_environment
from evolve.harness.worker import WorkerPool
from evolve.models.budget import Budget
from evolve.models.cache import CompletionCache
from evolve.models.cached import CachedModel
from evolve.models.create import create_model
from evolve.models.watched import WatchedModel
from evolve.progress import Progress
from evolve.protocols import Environment, Model
from evolve.records import Usage
from evolve.rollout import Rollout, RolloutLimits
from evolve.secrets import private_memory, secret_values
from evolve.traces import Traces
from evolve.workspace import Workspace

if TYPE_CHECKING:
    from evolve.store.ledger import Ledger


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
        concurrency=config.concurrency,
        episode_timeout_s=settings.episode_timeout_s,
        retries=settings.retries,
        error_share=settings.error_share,
    )
    return Rollout(bench.environment, bench.model, keeper, limits=limits, progress=progress, stop=stop)
