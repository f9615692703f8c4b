"""Calls that fit the schemas of tools and mean nothing; it knows tools, no environment."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from evolve.records import Call, Json, Tool

NONSENSE_STEPS = 6


def nonsense(tools: Sequence[Tool], seed: str) -> list[Call]:
    """Return seeded calls that fit the schemas and mean nothing."""
    random = Random(seed)  # noqa: S311  repeatable on purpose
    chosen = [random.choice(list(tools)) for _ in range(NONSENSE_STEPS)]
    return [Call(tool=tool.name, arguments=arguments_for(tool, random)) for tool in chosen]


def arguments_for(tool: Tool, random: Random) -> Json:
    """Return arguments for what the tool requires, of the declared types."""
    properties: Json = tool.parameters.get("properties", {})
    return {name: _value(properties.get(name, {}), random) for name in tool.parameters.get("required", ())}


def _value(schema: Json, random: Random) -> object:
    if schema.get("enum"):
        return random.choice(schema["enum"])
    kind = schema.get("type")
    plain: dict[object, object] = {
        "integer": random.randint(0, 9),
        "number": random.randint(0, 9),
        "boolean": random.random() < 0.5,
        "array": [],
        "object": {},
    }
    return plain.get(kind, f"nonsense {random.randint(0, 99)}")
