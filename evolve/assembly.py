"""Makes the objects of a run from a configuration and hands them to each other. Decides nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import entry_points
from pathlib import Path

from evolve.archive import Archive
from evolve.config import Config
from evolve.errors import ConfigError
from evolve.harness.check import check_folder
from evolve.harness.worker import WorkerPool
from evolve.models.budget import Budget
from evolve.models.cache import CachedModel, CompletionCache
from evolve.models.create import create_model
from evolve.proposers.agents import find_row
from evolve.proposers.command import CommandProposer
from evolve.proposers.handoff import HandoffProposer
from evolve.proposers.mechanic import Mechanic
from evolve.proposers.openai import OpenAIProposer
from evolve.protocols import Environment, Model, Proposer
from evolve.records import Usage
from evolve.rollout import RolloutLimits
from evolve.secrets import secret_values
from evolve.store import Ledger
from evolve.store.connection import utc_now
from evolve.traces import Traces
from evolve.workspace import Workspace

ENVIRONMENT_GROUP = "evolve.environments"


def environment_names() -> list[str]:
    """Return the names of all installed environments."""
    return sorted({point.name for point in entry_points(group=ENVIRONMENT_GROUP)})


def make_environment(name: str, options: Mapping[str, object]) -> Environment:
    """Make an environment by name.

    Raises:
        ConfigError: none of that name is installed, or an option is wrong.
    """
    found = {point.name: point for point in entry_points(group=ENVIRONMENT_GROUP)}
    if name not in found:
        raise ConfigError(f"there is no environment {name!r}; installed are: {', '.join(sorted(found))}")
    environment: Environment = found[name].load()(options)
    return environment


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


@dataclass(frozen=True)
class Bench:
    """What a roll-out needs, opened and ready."""

    environment: Environment
    model: CachedModel
    archive: Archive
    pool: WorkerPool


@asynccontextmanager
async def open_bench(
    workspace: Workspace,
    config: Config,
    ledger: Ledger,
    *,
    environ: Mapping[str, str],
    spent: Usage,
    model: Model | None = None,
) -> AsyncIterator[Bench]:
    """Open environment, model, cache and worker pool, and close them in the right order.

    Args:
        environ: where keys are read from; no worker and no proposer gets it.
        spent: what the run had used before, against its budget.
        model: asked in place of the one that the configuration describes.
    """
    environment = make_environment(config.environment, config.environments.get(config.environment, {}))
    model = model or create_model(config.model, environ=environ)
    traces = Traces(workspace.traces, secrets=secret_values(environ))
    archive = Archive(ledger, traces)
    budget = Budget(usd=config.budget.usd, tokens=config.budget.tokens, spent=spent)
    try:
        with CompletionCache(workspace.completions(model.fingerprint.digest)) as cache:
            cached = CachedModel(model, cache, budget=budget, price=config.model.price)
            isolation = config.harness
            async with WorkerPool(minimum_tier=isolation.isolation, call_timeout_s=isolation.call_timeout_s) as pool:
                try:
                    yield Bench(environment, cached, archive, pool)
                finally:
                    await cached.close()
    finally:
        await archive.close()


def rollout_limits(config: Config) -> RolloutLimits:
    """Return the bounds of roll-outs that a configuration asks for."""
    settings = config.rollout
    return RolloutLimits(
        concurrency=settings.concurrency,
        episode_timeout_s=settings.episode_timeout_s,
        retries=settings.retries,
        error_share=settings.error_share,
    )


def make_proposer(
    workspace: Workspace, config: Config, *, environ: Mapping[str, str], replay: Callable[[Path], str]
) -> Proposer:
    """Make the proposer that a configuration asks for.

    Raises:
        ConfigError: it names no agent, an unknown one, or no model.
    """
    settings = config.proposer
    transcripts = workspace.state / "transcripts"
    if settings.kind == "mechanic":
        return Mechanic()
    if settings.kind == "handoff":
        return HandoffProposer(templates=workspace.prompts)
    if settings.kind == "command":
        row = find_row(settings.agent, Path(settings.agents_file) if settings.agents_file else None)
        model_name = settings.model.id if settings.model else None
        return CommandProposer(
            row, environ=environ, transcripts=transcripts, model=model_name, templates=workspace.prompts
        )
    if settings.model is None:
        raise ConfigError("proposer.kind is openai, and proposer.model is not set: name the model that writes patches")
    return OpenAIProposer(
        create_model(settings.model, environ=environ),
        check=lambda folder: "\n".join(check_folder(folder)) or "The harness folder is fine.",
        replay=replay,
        transcripts=transcripts,
        turn_limit=settings.max_turns,
        templates=workspace.prompts,
    )
