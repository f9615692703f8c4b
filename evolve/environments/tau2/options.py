"""The options of the three environments, read and checked once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import Field, StrictInt, ValidationError, model_validator

from evolve.environments.options import refuse_unknown
from evolve.errors import ConfigError
from evolve.models.settings import ModelSettings
from evolve.records import Record, Split

NONE: Literal["none"] = "none"


class UserSettings(Record):
    """Who plays the customer: the replies of a file, or a model."""

    script: Path | None = Field(default=None, description="JSON: official task id to a list of replies")
    model: ModelSettings | None = Field(default=None, description="any model that `evolve` can ask")

    @model_validator(mode="after")
    def _is_one(self) -> UserSettings:
        if (self.script is None) == (self.model is None):
            raise ValueError("give either script (a file of replies) or model (a table, as [model] is one)")
        return self


class Options(Record):
    """What can be set in `[environments.tau2_NAME]`."""

    data: Path | None = Field(default=None, description="folder of the data; None: see `places`")
    train: StrictInt | None = Field(default=None, ge=0, description="first so many training tasks")
    guard: StrictInt | None = Field(default=None, ge=0, description="first so many guard tasks")
    heldout: StrictInt | None = Field(default=None, ge=0, description="first so many held-out tasks")
    texts: Literal["v0.2.0", "1.0.1"] | None = Field(default=None, description="version of tasks; None: what is there")
    user: Literal["none"] | UserSettings = Field(default=NONE, description="who plays the customer")
    judge: Literal["none"] | ModelSettings | None = Field(default=None, description="what scores NL_ASSERTION")
    max_steps: StrictInt = Field(default=200, ge=2, description="upstream's count of messages")
    max_errors: StrictInt = Field(default=10, ge=1, description="tool errors that end an episode")
    cache: Path | None = Field(default=None, description="folder of what user and judge models answered")

    def limit(self, split: Split) -> int | None:
        """Return how many tasks of a split are offered; None: all."""
        limits: dict[Split, int | None] = {
            Split.TRAIN: self.train,
            Split.GUARD: self.guard,
            Split.HELDOUT: self.heldout,
        }
        return limits[split]


def read_options(name: str, given: Mapping[str, object]) -> Options:
    """Return the options of an environment.

    Raises:
        ConfigError: an option is unknown or of the wrong kind; names it.
    """
    refuse_unknown(name, given, tuple(Options.model_fields))
    try:
        return Options.model_validate(dict(given))
    except ValidationError as error:
        first = error.errors()[-1]
        option = ".".join(str(part) for part in first["loc"])
        raise ConfigError(f"{name}: option {option}: {first['msg']}, got {first['input']!r}") from error


@dataclass(frozen=True, slots=True)
class Limits:
    """How an episode ends without anybody stopping it, counted as upstream counts."""

    max_steps: int
    max_errors: int

    @property
    def agent_steps(self) -> int:
        """Steps of the agent that fit: a message or call and the answer to it are two."""
        return (self.max_steps + 1) // 2
