"""What a model is made from, as configuration writes it. No keys stand here, only the names of variables."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import ConfigDict, Field, field_validator

from evolve.errors import ConfigError
from evolve.records import Json, Record, Usage

SHIPPED = "shipped:"
"""What begins the name of a recording that comes with evolve: `shipped:household` names that of an environment."""
FILES = ("path", "chat_template", "recording", "script")
"""Fields of a model's settings that name a file."""


def named(path: Path | None, field: str, kind: str) -> Path:
    """Return the path that a kind of model needs; `field` is its name in the settings.

    Raises:
        ConfigError: it is not set.
    """
    if path is None:
        raise ConfigError(f"model.{field} is empty: a model of kind {kind} needs the path of a file")
    return path.expanduser()


class Price(Record):
    """What an endpoint charges, in US dollars per million tokens."""

    model_config = ConfigDict(allow_inf_nan=False)

    prompt: float = Field(ge=0.0, description="prompt tokens that were not cached")
    cached: float = Field(ge=0.0, description="prompt tokens that the endpoint read from its cache")
    completion: float = Field(ge=0.0, description="generated tokens")

    def cost_usd(self, usage: Usage) -> float:
        """Return the price of a usage."""
        fresh = usage.prompt_tokens - usage.cached_tokens
        total = fresh * self.prompt + usage.cached_tokens * self.cached + usage.completion_tokens * self.completion
        return total / 1e6


class ModelSettings(Record):
    """One model. Fields of other kinds than its own are ignored."""

    model_config = ConfigDict(allow_inf_nan=False)

    kind: Literal["openai", "local", "recorded", "scripted"] = Field(
        default="openai", description="what answers; see the kinds above"
    )
    id: str = Field(default="", description="the model's name at its endpoint; local: a label, else the file's name")
    protocol: Literal["tools", "text"] = Field(
        default="tools", description="`text` for a model without tool calling; `evolve doctor` finds out"
    )

    temperature: float | None = Field(default=0.0, ge=0.0, description="None: not sent, the endpoint decides")
    top_p: float | None = Field(default=1.0, gt=0.0, le=1.0, description="None: not sent")
    max_tokens: int = Field(default=1024, gt=0, description="longest reply, in tokens")
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = Field(
        default="max_tokens", description="what the endpoint calls the longest reply"
    )
    seed: int | None = Field(default=0, description="None: not sent; sampled requests mix the stream in")
    tool_choice: Literal["auto", "required"] = Field(
        default="auto", description="`required`: each reply must be a call, where the endpoint can enforce it"
    )
    extra_body: Json = Field(default={}, description="more fields of the request, as the endpoint takes them")

    base_url: str = Field(
        default="https://api.openai.com/v1",
        description="where the endpoint is; no user name or password in it",
    )
    api_key_env: str | None = Field(default="OPENAI_API_KEY", description="variable that holds the key; None: no key")
    timeout_s: float = Field(default=120.0, gt=0.0, description="longest wait for one attempt")
    retries: int = Field(default=4, ge=0, description="further attempts after the first")
    price: Price | None = Field(default=None, description="None: costs are unknown")
    malformed_markers: tuple[str, ...] = Field(
        default=("tool_use_failed", "does not match the expected", "Failed to parse"),
        description="error codes, types or words by which an endpoint says that the model's call did not parse",
    )
    context_markers: tuple[str, ...] = Field(
        default=("context_length_exceeded", "exceed_context_size_error", "maximum context length"),
        description="error codes, types or words by which an endpoint says that the prompt is too long",
    )

    path: Path | None = Field(default=None, description="local: the GGUF file")
    threads: int = Field(default=2, gt=0, description="local: 1 beside other work, for two starve each other")
    context: int = Field(default=8192, gt=0, description="local: tokens of prompt and reply together")
    chat_template: Path | None = Field(default=None, description="local: a Jinja file in place of the model's own")
    prompt_cache: Literal["exact", "prefix", "warm"] = Field(
        default="prefix",
        description="local: 'exact' reads each episode from its start, 'prefix' reads system messages and tools once; "
        "both repeat bit for bit. 'warm' keeps whatever was read, and may not",
    )
    nice: int = Field(default=0, ge=0, le=19, description="local: how far the server gives way to other programs")

    recording: Path | None = Field(default=None, description="recorded: its file, or `shipped:ENVIRONMENT`")
    script: Path | None = Field(default=None, description="scripted: JSON Lines of replies, one for each turn")

    @field_validator("base_url")
    @classmethod
    def _holds_no_secret(cls, url: str) -> str:
        if "@" in url.split("//", 1)[-1].split("/", 1)[0]:
            raise ValueError("a URL must not hold a user name or password; name a variable in api_key_env")
        return url.rstrip("/")
