"""The tables of a configuration, with the default, the bounds and the meaning of each value."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from evolve.dotted import flatten
from evolve.gate.budget import Policy
from evolve.harness.artifact import is_switch
from evolve.models.settings import ModelSettings
from evolve.records import Layer, Strength, digest_of

LEDGER_KINDS = {"sqlite": "sqlite:///FILE", "postgresql": "postgresql://USER@HOST/NAME"}
"""Databases that can hold a ledger, and how their URLs look."""


MANY_AT_ONCE = 8
"""Episodes at once with an endpoint that takes several requests."""


class Section(BaseModel):
    """Base of configuration sections: immutable; unknown keys, infinite numbers and NaN are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class RolloutSettings(Section):
    """How episodes are produced."""

    concurrency: int | None = Field(
        default=None,
        ge=1,
        le=1000,
        description="episodes at once; not set: 8, and 1 with a local model, which answers one request after the other",
    )
    episode_timeout_s: float = Field(
        default=900.0, gt=0, description="seconds for one episode; more is an error, not a failure"
    )
    retries: int = Field(default=2, ge=0, le=10, description="further attempts after an infrastructure error")
    error_share: float = Field(default=0.2, gt=0, le=1, description="share of errored episodes that stops the run")


class HarnessSettings(Section):
    """What the run allows a harness to do; the proposer cannot edit this."""

    cap: Strength = Field(default=Strength.REWRITE, description="strongest outcome that a unit may have")
    off: tuple[str, ...] = Field(default=(), description="layers, or units by id, switched off for ablation")
    isolation: Literal["rlimits", "seatbelt", "seccomp", "seccomp+landlock"] = Field(
        default="seccomp", description="weakest acceptable tier of the rule worker"
    )
    call_timeout_s: float = Field(default=1.0, gt=0, description="seconds for one call of a rule")

    @field_validator("off")
    @classmethod
    def _can_be_switched(cls, off: tuple[str, ...]) -> tuple[str, ...]:
        wrong = next((name for name in off if not is_switch(name)), None)
        if wrong is not None:
            raise ValueError(f"{wrong!r} is neither a layer ({', '.join(Layer)}) nor a unit of one (as skill.a-name)")
        return off


class ProposerSettings(Section):
    """What writes candidates."""

    kind: Literal["mechanic", "openai", "command", "handoff"] = Field(
        default="mechanic", description="see [proposers](proposers.md)"
    )
    agent: str = Field(default="", description="row of the agents table, for kind command: codex, claude, opencode")
    agents_file: str = Field(default="", description="a TOML file of further agent rows")
    sandbox: Literal["auto", "required", "off"] = Field(
        default="auto", description="whether coding agents are shut in; without one the run says UNPROTECTED"
    )
    timeout_s: float = Field(default=1800.0, gt=0, description="seconds for one candidate")
    model: ModelSettings | None = Field(default=None, description="the model of kind openai")
    max_turns: int = Field(default=40, ge=1, description="turns of kind openai")


class GateSettings(Section):
    """How a candidate is tested."""

    policy: Policy = Field(
        default=Policy.STANDARD,
        description="false-accept rate of the whole run: `strict` 2 %, `standard` 10 %; `explore` commits nothing",
    )
    max_trials: int = Field(
        default=24, ge=1, le=64, description="trials per task and arm at most; 1 for a greedy model"
    )
    screen_tasks: int = Field(default=8, ge=1, description="targeted failing tasks in the screen")
    screen_sentries: int = Field(default=4, ge=0, description="passing tasks in the screen")


class EvaluationSettings(Section):
    """How a frozen harness is evaluated on held-out tasks."""

    trials: int = Field(default=3, ge=1, le=64, description="trials per task and arm; 1 for a greedy model")


class BudgetSettings(Section):
    """What a run may spend. None: no limit."""

    usd: float | None = Field(default=None, ge=0, description="US dollars of a run; needs `model.price`")
    tokens: int | None = Field(default=None, ge=0, description="tokens of a run, prompt and completion together")
    time_limit_s: float | None = Field(default=None, gt=0, description="seconds of one `evolve run`")


class LedgerSettings(Section):
    """Where the ledger lives: a file of the workspace, or a database by URL."""

    url: str = Field(
        default="",
        description="empty: .evolve/ledger.sqlite in the workspace; else `sqlite:///FILE` or `postgresql://…`",
    )

    @field_validator("url")
    @classmethod
    def _is_of_a_known_kind(cls, url: str) -> str:
        kind, sign, _ = url.partition("://")
        if url and not (sign and kind.partition("+")[0] in LEDGER_KINDS):
            raise ValueError(f"leave it empty (a file of the workspace), or write {' or '.join(LEDGER_KINDS.values())}")
        return url


class Config(Section):
    """All of it."""

    schema_version: Literal[1] = Field(default=1, description="version of this form")
    environment: str = Field(default="household", description="name of the environment to evolve for")
    environments: dict[str, dict[str, Any]] = Field(default={}, description="options of each environment, by name")
    iterations: int = Field(default=5, ge=1, le=1000, description="candidates that a run tries at most")
    model: ModelSettings = ModelSettings(kind="openai")
    rollout: RolloutSettings = RolloutSettings()
    harness: HarnessSettings = HarnessSettings()
    proposer: ProposerSettings = ProposerSettings()
    gate: GateSettings = GateSettings()
    evaluation: EvaluationSettings = EvaluationSettings()
    budget: BudgetSettings = BudgetSettings()
    ledger: LedgerSettings = LedgerSettings()

    @property
    def concurrency(self) -> int:
        """How many episodes are played at once.

        A local model reads a prompt anew where another episode was served in between, and answers one request at a
        time: a second episode would only slow the first one down.
        """
        return self.rollout.concurrency or (1 if self.model.kind == "local" else MANY_AT_ONCE)

    @property
    def digest(self) -> str:
        """SHA-256 of all values."""
        return digest_of(self.model_dump(mode="json"))


def flat_values(config: Config) -> dict[str, Any]:
    """Return every value by dotted key, for `config show`."""
    return flatten(config.model_dump(mode="json"))
