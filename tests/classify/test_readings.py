"""Calls written as text."""

from typing import Any

import pytest
from handmade import DESK, HOUSE

from evolve.classify.readings import read_calls, repaired_object, spoken_actions

SCHEMAS = {tool.name: tool.parameters for tool in DESK}
ORDER = {"order_id": "O-1"}


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ('{"name": "get_order", "arguments": {"order_id": "O-1"}}', "json"),
        ('I look.\n```json\n{"tool": "get_order", "parameters": {"order_id": "O-1"}}\n```', "fenced"),
        ('<tool_call>{"name": "get_order", "arguments": "{\\"order_id\\": \\"O-1\\"}"}</tool_call>', "tagged"),
        ('{"type": "function", "function": {"name": "get_order", "arguments": {"order_id": "O-1"}}}', "json"),
        ('{"get_order": {"order_id": "O-1"}}', "json"),
        ('{"order_id": "O-1"}', "json"),
        ('get_order(order_id="O-1")', "code"),
        ("First get_order('O-1').", "code"),
    ],
)
def test_each_shape_is_read_as_the_one_call_it_spells(text: str, shape: str) -> None:
    """JSON, fences, tags, nested functions, bare arguments and code all give the same call."""
    assert read_calls(text, SCHEMAS) == [(shape, "get_order", ORDER)]


@pytest.mark.parametrize(
    "text",
    [
        "I will call get_order next.",
        '{"name": "delete_order", "arguments": {"order_id": "O-1"}}',
        '{"name": "get_order", "arguments": {"id": "O-1"}}',
        "get_order(order_id=)",
        "get_order(order_id=x.y)",
        "{not json}",
        "",
    ],
)
def test_what_is_no_complete_call_is_not_read(text: str) -> None:
    """Unknown tools, wrong or missing arguments and mere mentions give no reading."""
    assert read_calls(text, SCHEMAS) == []


def test_two_different_calls_are_two_readings_and_a_repeated_one_is_one() -> None:
    """A text that could mean two calls says so."""
    assert len(read_calls("get_order('O-1') get_order('O-2')", SCHEMAS)) == 2
    assert len(read_calls("get_order('O-1') get_order('O-1')", SCHEMAS)) == 1


def test_a_published_action_alone_on_a_line_is_spoken() -> None:
    """The action is found behind a label and in quotes, not inside a sentence."""
    actions = ("open fridge 1", "look")
    assert spoken_actions("Thought: hungry.\nAction: 'open fridge 1'.", actions) == ["open fridge 1"]
    assert spoken_actions("I could open fridge 1 or look around.", actions) == []


@pytest.mark.parametrize(
    "raw", ["{'action': 'look'}", '{"action": "look",}', '{"action": "look"', '```json\n{"action": "look"}\n```']
)
def test_broken_json_is_mended_where_it_can_mean_one_thing(raw: str) -> None:
    """Quotes, commas, closers and fences are mended."""
    assert repaired_object(raw, HOUSE[0].parameters) == {"action": "look"}


@pytest.mark.parametrize("raw", ["", "look", '{"verb": "look"}', "[1]"])
def test_text_that_is_no_object_of_the_schema_is_left_alone(raw: Any) -> None:
    """Nothing is invented for text that is not nearly the arguments."""
    assert repaired_object(raw, HOUSE[0].parameters) is None
