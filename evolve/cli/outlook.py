"""What a run would do and could cost at most, from the configuration and what is on record. Asks no model."""

from __future__ import annotations

import math
from dataclasses import asdict

from pydantic import Field

from evolve.assembly import make_environment
from evolve.cli.output import count
from evolve.cli.place import Place, reading
from evolve.config import Config
from evolve.gate.budget import ErrorBudget
from evolve.gate.guards import GUARD_TRIALS
from evolve.gate.plan import ASSUMED_VARIANCE, plan
from evolve.gate.sequential import SequentialPairedTest
from evolve.loop.control import CONTROL_EVERY, CONTROL_TRIALS
from evolve.loop.trials import CONFIRMATION_TRIALS
from evolve.models.settings import ModelSettings
from evolve.records import Json, Record, Split, Usage
from evolve.store import SelfCheckEntry


class Outlook(Record):
    """A run before it starts. Episodes and requests are upper bounds; None is unknown."""

    environment: str
    model: str
    proposer: str
    iterations: int
    train: int
    guard: int
    step_limit: int
    is_greedy: bool
    max_trials: int = Field(description="trials per task and arm at most")
    alpha: float = Field(description="false-accept rate of the first candidate")
    gate: Json = Field(description="what the gate can see, and the trials it takes on average")
    noise_pairs: int = Field(description="pairs that the noise was measured on in earlier runs; 0: it is assumed")
    sentence: str
    warnings: tuple[str, ...]
    episodes_at_most: int
    requests_at_most: int
    tokens_per_request: float | None = Field(description="as measured in earlier runs of this workspace")
    tokens_at_most: int | None
    cost_usd_at_most: float | None
    budget: Json


def look_ahead(place: Place, *, wished_gain: float | None = None) -> Outlook:
    """Work out what a run under this configuration would do."""
    config = place.config
    environment = make_environment(config.environment, config.environments.get(config.environment, {}))
    train, guard = (len(environment.tasks(split)) for split in (Split.TRAIN, Split.GUARD))
    is_greedy = config.model.temperature == 0.0
    trials = 1 if is_greedy else config.gate.max_trials
    test = SequentialPairedTest(max_trials=trials)
    alpha = ErrorBudget(config.gate.policy).next_alpha
    noise = _noise(place)
    seen = plan(
        tasks=train,
        alpha=alpha,
        test=test,
        wished_gain=wished_gain,
        pair_variance=ASSUMED_VARIANCE if noise is None else noise.pair_variance,
    )
    episodes = _episodes(config, train, guard, trials=seen.max_trials, is_greedy=is_greedy)
    requests = episodes * environment.card.step_limit
    used = _measured(place)
    return Outlook(
        environment=config.environment,
        model=_model_name(config.model),
        proposer=config.proposer.kind,
        iterations=config.iterations,
        train=train,
        guard=guard,
        step_limit=environment.card.step_limit,
        is_greedy=is_greedy,
        max_trials=seen.max_trials,
        alpha=alpha,
        gate=asdict(seen),
        noise_pairs=0 if noise is None else noise.pairs,
        sentence=str(seen),
        warnings=seen.warnings,
        episodes_at_most=episodes,
        requests_at_most=requests,
        tokens_per_request=None if used is None else _tokens(used),
        tokens_at_most=None if used is None else round(requests * _tokens(used)),
        cost_usd_at_most=_cost(config.model, used, requests),
        budget=config.budget.model_dump(mode="json"),
    )


def outlook_text(outlook: Outlook) -> str:
    """Return an outlook for people."""
    known = outlook.tokens_per_request is not None
    tokens = f"{outlook.tokens_at_most:,} tokens" if known else "tokens unknown until a first run has measured them"
    cost = "cost unknown" if outlook.cost_usd_at_most is None else f"{outlook.cost_usd_at_most:.2f} USD"
    limits = ", ".join(f"{name} {value}" for name, value in outlook.budget.items() if value is not None)
    return "\n".join(
        [
            f"{outlook.environment} with {outlook.model}, proposer {outlook.proposer}: "
            f"{count(outlook.iterations, 'iteration')} at most",
            f"  {outlook.train} training and {outlook.guard} guard tasks, {outlook.step_limit} steps each at most",
            f"  {outlook.sentence}",
            f"  noise: {_noise_text(outlook)}",
            f"  at most {outlook.episodes_at_most:,} episodes and {outlook.requests_at_most:,} requests, "
            f"{tokens}, {cost}; reused completions are not asked again",
            f"  budget: {limits or 'no limit'}",
            *(f"  warning: {warning}" for warning in outlook.warnings),
        ]
    )


def _episodes(config: Config, train: int, guard: int, *, trials: int, is_greedy: bool) -> int:
    """Return the most episodes that a run can need: each candidate goes through all stages with all trials."""
    confirmed = 0 if is_greedy else CONFIRMATION_TRIALS
    control = 0 if is_greedy else 2 * CONTROL_TRIALS * train * math.ceil(config.iterations / CONTROL_EVERY)
    screened = config.gate.screen_tasks + config.gate.screen_sentries
    per_candidate = 2 * (screened + train * (trials + confirmed) + guard * min(GUARD_TRIALS, trials))
    return control + config.iterations * (train + per_candidate)


def _noise_text(outlook: Outlook) -> str:
    variance = f"{outlook.gate['pair_variance']:.3f} per pair"
    if outlook.noise_pairs:
        return f"{variance}, measured on {count(outlook.noise_pairs, 'pair')} of the incumbent against itself"
    return f"{variance}, assumed; a run measures it before its first candidate is tested"


def _noise(place: Place) -> SelfCheckEntry | None:
    """Return the latest control of this environment that measured the incumbent against itself."""
    with reading(place) as ledger:
        for run in ledger.runs() if ledger else []:
            if ledger and run.environment == place.config.environment:
                measured = [check for check in ledger.self_checks(run.run_id) if check.is_passed and check.pairs]
                if measured:
                    return measured[-1]
    return None


def _model_name(settings: ModelSettings) -> str:
    file = settings.path or settings.recording or settings.script
    return settings.id or (file.name if file else f"({settings.kind}, no id)")


def _measured(place: Place) -> tuple[Usage, int] | None:
    """Return the usage and the requests of the environment's latest run that asked a model."""
    with reading(place) as ledger:
        for run in ledger.runs() if ledger else []:
            if ledger and run.environment == place.config.environment:
                totals = ledger.totals(run.run_id)
                if totals.requests_asked:
                    return totals.usage, totals.requests_asked
    return None


def _tokens(used: tuple[Usage, int]) -> float:
    usage, requests = used
    return round((usage.prompt_tokens + usage.completion_tokens) / requests, 1)


def _cost(settings: ModelSettings, used: tuple[Usage, int] | None, requests: int) -> float | None:
    if settings.price is None or used is None:
        return None
    usage, asked = used
    return round(settings.price.cost_usd(usage) / asked * requests, 4)
