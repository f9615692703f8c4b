"""Makes texts of different tasks comparable: what varies from task to task is masked, what a rule says stays."""

from __future__ import annotations

import re
from collections.abc import Sequence

from evolve.records import Call, Json, Tool

SHORTEST_MASKED = 3


def masked(text: str) -> str:
    """Replace mail addresses and words with digits by `<id>`, bare numbers by `<n>`; make white space single."""
    text = re.sub(r"\S+@\S+\.\w+", "<id>", text)
    text = re.sub(r"#?\b(?=[\w-]*\d)(?=[\w-]*[^\W\d_])\w[\w-]*", "<id>", text)
    text = re.sub(r"[#$€]?\d+(?:[.,:]\d+)*%?", "<n>", text)
    return " ".join(text.split())


def masked_for(text: str, call: Call | None, tools: Sequence[Tool]) -> str:
    """Mask a text, and in it the values that the call gave for open (not enumerated) parameters."""
    for name, value in sorted(open_values(call, tools).items(), key=lambda item: (-len(item[1]), item[0])):
        text = re.sub(rf"(?<!\w){re.escape(value)}(?!\w)", f"<{name}>", text)
    return masked(text)


def open_values(call: Call | None, tools: Sequence[Tool]) -> dict[str, str]:
    """Return the string values of a call whose parameters have no enum, by parameter."""
    if call is None:
        return {}
    properties = schema_of(call.tool, tools).get("properties", {})
    return {
        name: value
        for name, value in call.arguments.items()
        if isinstance(value, str) and len(value) >= SHORTEST_MASKED and "enum" not in properties.get(name, {})
    }


def schema_of(tool: str, tools: Sequence[Tool]) -> Json:
    """Return a tool's parameter schema, empty for an unknown tool."""
    return next((known.parameters for known in tools if known.name == tool), {})
