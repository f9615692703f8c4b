"""What a run takes on average, from the plan of its gate and from what earlier runs in this workspace took."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pydantic import Field

from evolve.cli.place import Place, reading
from evolve.config import Config
from evolve.gate.guards import GUARD_TRIALS
from evolve.gate.plan import ASSUMED_VARIANCE, Plan
from evolve.loop.control import CONTROL_EVERY, CONTROL_TRIALS
from evolve.loop.trials import CONFIRMATION_TRIALS
from evolve.models.settings import Price
from evolve.records import Json, Record, Usage
from evolve.store import EpisodeEntry, RunEntry

if TYPE_CHECKING:
    from evolve.store.ledger import Ledger


class Pace(Record):
    """What an episode took in the latest run with the same environment and model. None where nothing is on record."""

    run_id: str
    episodes: int = Field(description="that this was measured on")
    requests_per_episode: float
    asked_share: float = Field(description="of the requests, those that were not reused")
    usage: Usage = Field(description="of all requests, reused ones included")
    requests: int
    wall_s_per_episode: float = Field(description="seconds; episodes that asked for nothing take next to none")

    @property
    def tokens_per_request(self) -> float:
        """Tokens of a request on average."""
        return round((self.usage.prompt_tokens + self.usage.completion_tokens) / self.requests, 1)

    def cost_usd(self, price: Price | None, requests: float) -> float | None:
        """Return what asking so many requests costs; None without a price."""
        return None if price is None else round(price.cost_usd(self.usage) / self.requests * requests, 4)


class Noise(Record):
    """E(d^2) of a pair of the incumbent against itself, and where it is from."""

    pair_variance: float
    pairs: int = Field(description="that it was measured on; 0: it is assumed, or none")
    source: str


class Expected(Record):
    """Averages of a run in which nothing is accepted, and what each accepted candidate adds. None is unknown."""

    episodes: int
    episodes_per_accept: int
    requests: int = Field(description="reused ones included; by the step limit where no episode is on record")
    tokens: int | None
    cost_usd: float | None
    wall_s: float | None
    measured_on: str | None = Field(description="the run that requests, tokens and seconds are taken from")


ASSUMED = Noise(
    pair_variance=ASSUMED_VARIANCE,
    pairs=0,
    source="assumed: 40% of tasks solved at 95%, 20% at 5%, the rest at 20 to 80%, both arms drawn independently",
)


NO_NOISE = Noise(pair_variance=0.0, pairs=0, source="none, a greedy model repeats itself")


def most_episodes(config: Config, train: int, guard: int, *, trials: int, is_greedy: bool) -> int:
    """Return the most episodes that a run can need: each candidate goes through all stages with all trials."""
    confirmed = 0 if is_greedy else CONFIRMATION_TRIALS
    screened = config.gate.screen_tasks + config.gate.screen_sentries
    per_candidate = 2 * (screened + train * (trials + confirmed) + guard * min(GUARD_TRIALS, trials))
    return _control(config, train, is_greedy=is_greedy) + config.iterations * (train + per_candidate)


def expect(config: Config, plan: Plan, guard: int, *, is_greedy: bool, pace: Pace | None, step_limit: int) -> Expected:
    """Work out the averages. The incumbent's trials are played once and serve all candidates until one is accepted."""
    train = plan.tasks
    test, good = train * plan.trials_if_null, train * plan.trials_if_smallest_gain
    after = train * (0 if is_greedy else CONFIRMATION_TRIALS) + guard * min(GUARD_TRIALS, plan.max_trials)
    if is_greedy:  # the one trial of the incumbent is the evidence
        episodes, per_accept = train + config.iterations * test, good - test + 2 * after
    else:
        episodes = train + _control(config, train, is_greedy=False) + (config.iterations + 1) * test
        per_accept = good - test + 2 * after + train + test
    requests = episodes * (step_limit if pace is None else pace.requests_per_episode)
    asked = None if pace is None else requests * pace.asked_share
    return Expected(
        episodes=round(episodes),
        episodes_per_accept=round(per_accept),
        requests=round(requests),
        tokens=None if pace is None or asked is None else round(asked * pace.tokens_per_request),
        cost_usd=None if pace is None or asked is None else pace.cost_usd(config.model.price, asked),
        wall_s=None if pace is None else round(episodes * pace.wall_s_per_episode / config.concurrency, 1),
        measured_on=None if pace is None else pace.run_id,
    )


def measured_pace(place: Place) -> Pace | None:
    """Return what episodes took in the latest such run that asked a model."""
    with reading(place) as ledger:
        for run in _alike(place, ledger):
            assert ledger is not None
            episodes = ledger.episodes(run.run_id)
            requests, asked = sum(e.requests for e in episodes), ledger.totals(run.run_id).requests_asked
            if asked:
                return Pace(
                    run_id=run.run_id,
                    episodes=len(episodes),
                    requests_per_episode=round(requests / len(episodes), 2),
                    asked_share=round(min(1.0, asked / requests), 4),
                    usage=Usage.total(_usage(entry) for entry in episodes),
                    requests=requests,
                    wall_s_per_episode=round(math.fsum(entry.wall_s for entry in episodes) / len(episodes), 3),
                )
    return None


def measured_noise(place: Place) -> Noise:
    """Return the noise of the latest passed A/A control of such a run; assumed where there is none.

    No difference in n pairs is not no noise: up to 3 / n is not ruled out at 95% (the rule of three; Hanley and
    Lippman-Hand 1983, JAMA 249:1743), and that is what is planned with.
    """
    with reading(place) as ledger:
        for run in _alike(place, ledger):
            assert ledger is not None
            for check in reversed(ledger.self_checks(run.run_id)):
                if check.is_passed and check.pairs:
                    variance = max(check.pair_variance, 3.0 / check.pairs)
                    source = f"measured in run {run.run_id} on {check.pairs} pairs of the incumbent against itself"
                    return Noise(pair_variance=variance, pairs=check.pairs, source=source)
    return ASSUMED


def _control(config: Config, train: int, *, is_greedy: bool) -> int:
    return 0 if is_greedy else 2 * CONTROL_TRIALS * train * math.ceil(config.iterations / CONTROL_EVERY)


def _usage(entry: EpisodeEntry) -> Usage:
    names = ("prompt_tokens", "cached_tokens", "completion_tokens")
    return Usage(**{name: getattr(entry, name) for name in names})


def _alike(place: Place, ledger: Ledger | None) -> Iterator[RunEntry]:
    """Yield runs with the same environment and model, newest first; what a model costs does not make it another."""
    model = _without_price(place.config.model.model_dump(mode="json"))
    for run in ledger.runs() if ledger else []:
        if run.environment == place.config.environment and _without_price(run.config.get("model", {})) == model:
            yield run


def _without_price(model: Json) -> Json:
    return {name: value for name, value in model.items() if name != "price"}
