"""A model's tool calls, from the text that it wrote. Reading is strict: mending is the harness's business."""

from __future__ import annotations

from typing import Any

import orjson

from evolve.records import Json, ProposedCall

DEEPEST = 100
"""Levels of lists and objects in arguments. What is nested deeper reads, and could be neither copied nor kept."""


def read_call(call_id: str, tool: str, arguments: Any) -> ProposedCall:
    """Return a call as the model wrote it.

    Args:
        call_id: its name in the conversation.
        tool: the tool that it names.
        arguments: JSON text, or a JSON value from endpoints that read it themselves.
    """
    written = arguments if isinstance(arguments, str) else orjson.dumps(arguments).decode()
    return ProposedCall(call_id=call_id, tool=tool, arguments_text=written, arguments=json_object(written))


def call_id(turn: int, index: int) -> str:
    """Return the id of a call by its place, so that equal replies are equal bytes.

    Endpoints draw theirs at random, and some accept nine letters and digits only.
    """
    return f"c{turn:05d}{index:03d}"


def json_object(text: str) -> Json | None:
    """Return the JSON object that the whole text is; None where it is none, or nested deeper than anything is kept."""
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) and not _is_deeper(value, DEEPEST) else None


def _is_deeper(value: object, levels: int) -> bool:
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return inside is not None and (levels == 0 or any(_is_deeper(one, levels - 1) for one in inside))
