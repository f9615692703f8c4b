"""What a run would do and could cost at most, from the configuration and what is on record. Asks no model."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict

from pydantic import Field

from evolve.cli.expected import (
    ASSUMED,
    NO_NOISE,
    Expected,
    Noise,
    Pace,
    expect,
    measured_noise,
    measured_pace,
    most_episodes,
)
from evolve.cli.place import Place, reading
from evolve.doctor import budget_warnings, refusals, spent_on_record, warnings
from evolve.environments.installed import make_environment
from evolve.errors import EvolveError
from evolve.figures import count, duration, money
from evolve.gate.budget import ErrorBudget
from evolve.gate.plan import plan, plan_greedy
from evolve.gate.sequential import SequentialPairedTest
from evolve.loop.on_record import budget_after
from evolve.models.settings import ModelSettings
from evolve.records import Json, Record, Split, Usage


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
    noise: Noise
    sentence: str
    warnings: tuple[str, ...]
    expected: Expected
    episodes_at_most: int
    requests_at_most: int
    tokens_per_request: float | None = Field(description="as measured in earlier runs of this workspace")
    tokens_at_most: int | None
    cost_usd_at_most: float | None
    budget: Json
    spent: Usage = Field(description="what the run that would go on has used, unfinished episodes included")
    refusals: tuple[str, ...] = Field(
        description="why a run would refuse to begin as things are; empty: it would begin"
    )


def look_ahead(place: Place, *, wished_gain: float | None = None, resume: str | None = None) -> Outlook:
    """Work out what a run under this configuration would do; `resume` is the run that would go on, None a new one."""
    config = place.config
    environment = make_environment(config.environment, config.environments.get(config.environment, {}))
    train, guard = (len(environment.tasks(split)) for split in (Split.TRAIN, Split.GUARD))
    is_greedy = config.model.temperature == 0.0
    alpha = _budget(place, resume).next_alpha
    noise, pace = _measured(place, is_greedy=is_greedy)
    spent = spent_on_record(place.workspace, config, place.environ, resume)
    if is_greedy:
        seen = plan_greedy(tasks=train, alpha=alpha, wished_gain=wished_gain)
    else:
        test = SequentialPairedTest(max_trials=config.gate.max_trials)
        seen = plan(tasks=train, alpha=alpha, test=test, wished_gain=wished_gain, pair_variance=noise.pair_variance)
    limit = environment.card.step_limit
    episodes = most_episodes(config, train, guard, trials=seen.max_trials, is_greedy=is_greedy)
    requests = episodes * limit
    return Outlook(
        environment=config.environment,
        model=_model_name(config.model),
        proposer=config.proposer.kind,
        iterations=config.iterations,
        train=train,
        guard=guard,
        step_limit=limit,
        is_greedy=is_greedy,
        max_trials=seen.max_trials,
        alpha=alpha,
        gate=asdict(seen),
        noise=noise,
        sentence=str(seen),
        warnings=(
            *seen.warnings,
            *(warnings(place.workspace, config) if resume is None else ()),
            *budget_warnings(config, spent),
        ),
        expected=expect(config, seen, guard, is_greedy=is_greedy, pace=pace, step_limit=limit),
        episodes_at_most=episodes,
        requests_at_most=requests,
        tokens_per_request=None if pace is None else pace.tokens_per_request,
        tokens_at_most=None if pace is None else round(requests * pace.tokens_per_request),
        cost_usd_at_most=None if pace is None else pace.cost_usd(config.model.price, requests),
        budget=config.budget.model_dump(mode="json"),
        spent=spent,
        refusals=tuple(one.reason for one in refusals(place.workspace, config, place.environ, resume=resume)),
    )


def _budget(place: Place, resume: str | None) -> ErrorBudget:
    """Return the error budget of a run that would go on, as its candidates have left it; the whole of a new one's."""
    policy = place.config.gate.policy
    if resume is not None:
        with suppress(EvolveError), reading(place) as ledger:  # what does not read a run refuses for
            if ledger is not None:
                return budget_after(policy, ledger.candidates(resume))
    return ErrorBudget(policy)


def _measured(place: Place, *, is_greedy: bool) -> tuple[Noise, Pace | None]:
    """Return what is on record of earlier runs; of a ledger that does not read as of none."""
    try:
        return NO_NOISE if is_greedy else measured_noise(place), measured_pace(place)
    except EvolveError:  # a run refuses for it
        return NO_NOISE if is_greedy else ASSUMED, None


def outlook_text(outlook: Outlook) -> str:
    """Return an outlook for people."""
    known = outlook.tokens_per_request is not None
    tokens = (
        count(outlook.tokens_at_most or 0, "token") if known else "tokens unknown until a first run has measured them"
    )
    limits = ", ".join(f"{name} {value}" for name, value in outlook.budget.items() if value is not None)
    return "\n".join(
        [
            f"environment {outlook.environment}, model {outlook.model}, proposer {outlook.proposer}: "
            f"{count(outlook.iterations, 'iteration')} at most",
            f"  {outlook.train} training and {outlook.guard} guard tasks, {outlook.step_limit} steps each at most",
            f"  {outlook.sentence}",
            f"  noise (incumbent against itself): {_noise_text(outlook.noise)}",
            f"  expected if nothing is accepted: {_expected_text(outlook)}",
            f"  at most {count(outlook.episodes_at_most, 'episode')} and {count(outlook.requests_at_most, 'request')}, "
            f"{tokens}, {money(outlook.cost_usd_at_most)}; reused completions are not asked again",
            f"  budget: {limits or 'no limit'}{_spent_text(outlook.spent)}",
            *(f"  warning: {warning}" for warning in outlook.warnings),
            *(f"  a run would refuse to begin: {reason}" for reason in outlook.refusals),
        ]
    )


def _noise_text(noise: Noise) -> str:
    return f"{noise.pair_variance:.3f} per pair, {noise.source}" if noise.pair_variance else noise.source


def _spent_text(spent: Usage) -> str:
    """Say what a run that would go on has used; nothing for one that has used nothing."""
    tokens = spent.prompt_tokens + spent.completion_tokens
    cost = "" if spent.cost_usd is None else f" and {money(spent.cost_usd)}"
    return f"; {count(tokens, 'token')}{cost} are spent" if tokens else ""


def _expected_text(outlook: Outlook) -> str:
    expected = outlook.expected
    parts = [count(expected.episodes, "episode"), count(expected.requests, "request")]
    if expected.measured_on is None:
        parts[-1] += f" (at {outlook.step_limit} each: none is on record)"
    else:
        parts += [count(expected.tokens or 0, "token"), duration(expected.wall_s or 0.0)]
        parts += [] if expected.cost_usd is None else [money(expected.cost_usd)]
        parts[-1] += f" (as in run {expected.measured_on})"
    return f"{', '.join(parts)}; each accepted candidate adds {count(expected.episodes_per_accept, 'episode')}"


def _model_name(settings: ModelSettings) -> str:
    file = settings.path or settings.recording or settings.script
    name = settings.id or (file.name if file else f"not named yet (kind {settings.kind})")
    return f"{name} (recorded)" if settings.kind == "recorded" else name
