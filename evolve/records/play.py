"""What environments, models and the agent between them hand to each other."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from pydantic import Field

from evolve.records.base import ErrorKind, Json, Record, Split, digest_of


class Task(Record):
    """One problem. Its checker and gold stay inside the environment."""

    task_id: str
    environment: str
    split: Split
    family: str
    text: str = Field(description="what the agent is told; skills are retrieved by it")


class Tool(Record):
    """A tool offered to the model. `parameters` is a JSON schema; `read_only` tools may be probed."""

    name: str
    description: str
    parameters: Json
    read_only: bool = False

    def function_schema(self) -> Json:
        """Return the OpenAI function schema (read_only is not part of it)."""
        function = {"name": self.name, "description": self.description, "parameters": self.parameters}
        return {"type": "function", "function": function}


class Call(Record):
    """A call that an environment can be asked to run."""

    tool: str
    arguments: Json


class ProposedCall(Record):
    """A call as the model wrote it. `arguments` is None where `arguments_text` is no JSON object."""

    call_id: str
    tool: str
    arguments_text: str
    arguments: Json | None


class Observation(Record):
    """What an environment answers: its own words byte for byte, and apart from them what kind of error."""

    text: str
    error_kind: ErrorKind | None = None
    done: bool = False
    admissible: tuple[str, ...] | None = None


class Opening(Record):
    """How an episode begins: the system prompt, the user's first message, the admissible actions."""

    system: str
    user: str
    admissible: tuple[str, ...] | None = None


class Score(Record):
    """The environment's own number in [0, 1]; `success` is value >= pass mark; `version` names the scorer."""

    value: float = Field(ge=0.0, le=1.0)
    success: bool
    parts: dict[str, float] = Field(default={})
    version: str


class Usage(Record):
    """Tokens and money. `cost_usd` is None where no price is known."""

    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float | None = None

    @classmethod
    def total(cls, usages: Iterable[Usage]) -> Usage:
        """Return the sum; its cost is that of those whose price is known."""
        prompt = cached = completion = 0
        costs: list[float] = []
        for usage in usages:
            prompt += usage.prompt_tokens
            cached += usage.cached_tokens
            completion += usage.completion_tokens
            costs += [] if usage.cost_usd is None else [usage.cost_usd]
        cost = sum(costs) if costs else None
        return cls(prompt_tokens=prompt, cached_tokens=cached, completion_tokens=completion, cost_usd=cost)

    def __add__(self, other: Usage) -> Usage:
        return Usage.total((self, other))


class ModelFingerprint(Record):
    """What must be equal for two completions to be comparable; part of every record and cache key."""

    model_id: str
    endpoint: str = Field(description="kind of endpoint: openai, local, scripted")
    protocol: Literal["tools", "text"]
    sampling: Json
    weights_sha256: str | None = None

    @property
    def digest(self) -> str:
        """SHA-256 of all fields."""
        return digest_of(self.model_dump(mode="json"))

    @property
    def is_greedy(self) -> bool:
        """True where temperature is 0: trials beyond the first are then the same episode."""
        return float(self.sampling.get("temperature", 1.0)) == 0.0


class Completion(Record):
    """One answer of a model. `malformed` holds the endpoint's words where it could not parse a call."""

    text: str
    calls: tuple[ProposedCall, ...] = ()
    usage: Usage = Usage()
    finish_reason: str = "stop"
    malformed: str | None = None
