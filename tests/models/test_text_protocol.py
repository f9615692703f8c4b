"""Tool calls written as text."""

import asyncio
import json
from typing import Any

import pytest

from evolve.models.scripted import ScriptedModel, reply_text
from evolve.models.text_protocol import TextProtocolModel, explanation, with_call
from evolve.protocols import ModelRequest
from evolve.records import Completion

CALL = '{"tool": "go", "arguments": {"to": "desk 1"}}'
TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "go",
            "description": "Walk <there>.",
            "parameters": {"type": "object", "properties": {"to": {"type": "string"}}},
        },
    }
]


def read(text: str) -> Completion:
    return with_call(Completion(text=text), turn=3)


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        (CALL, ""),
        (f"\n  {CALL}\n", ""),
        (f"```json\n{CALL}\n```", ""),
        (f"```\n{CALL}\n```", ""),
        (f"I go there now.\n```json\n{CALL}\n```\n", "I go there now."),
    ],
)
def test_calls_are_read(text: str, rest: str) -> None:
    """The whole reply, or its one fenced block, is the call; what stands beside the block stays text."""
    completion = read(text)
    assert [(call.tool, call.arguments) for call in completion.calls] == [("go", {"to": "desk 1"})]
    assert completion.text == rest


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I go to desk 1.",
        f"I go: {CALL}",
        f"{CALL}\n{CALL}",
        f"```json\n{CALL}\n```\n```json\n{CALL}\n```",
        f"```json\n{CALL}",
        f"[{CALL}]",
        '{"tool": "go"}',
        '{"tool": "go", "arguments": "desk 1"}',
        '{"tool": 3, "arguments": {}}',
        '{"name": "go", "arguments": {}}',
        '{"tool": "go", "arguments": {}, "why": "so"}',
        '{"tool": "go", "arguments": {"to": "desk 1"}',
        "{'tool': 'go', 'arguments': {}}",
    ],
)
def test_anything_else_is_a_message(text: str) -> None:
    """What is not exactly a call is left as the model wrote it, and nothing is guessed."""
    completion = read(text)
    assert completion.calls == ()
    assert completion.text == text


def test_model_is_told_in_text() -> None:
    """Tools go into the system message, calls become JSON text, and what tools answer comes from the user."""
    inner = ScriptedModel([reply_text(CALL)])
    call = {"id": "c", "type": "function", "function": {"name": "go", "arguments": '{"to":"desk 1"}'}}
    messages = [
        {"role": "system", "content": "You are an agent."},
        {"role": "user", "content": "Find the key."},
        {"role": "assistant", "content": "I go.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "Desk 1 is empty."},
        {"role": "user", "content": "Hurry."},
    ]
    completion = asyncio.run(TextProtocolModel(inner).complete(ModelRequest(messages, TOOLS, "t/1", True)))
    assert completion.calls[0].tool == "go"
    (asked,) = inner.requests
    assert (asked.tools, asked.stream, asked.is_first) == ([], "t/1", True)
    system, *rest = asked.messages
    assert system == {"role": "system", "content": f"You are an agent.\n\n{explanation(TOOLS)}"}
    assert rest == [
        {"role": "user", "content": "Find the key."},
        {"role": "assistant", "content": 'I go.\n{"tool":"go","arguments":{"to":"desk 1"}}'},
        {"role": "user", "content": "Desk 1 is empty.\n\nHurry."},
    ]


def test_explanation_names_each_tool_in_plain_characters() -> None:
    """The model reads names, descriptions, forms and schemas as they are, without any escapes."""
    words = explanation(TOOLS)
    assert "## go\n\nWalk <there>.\n" in words
    assert '{"tool":"go","arguments":{"to":"<string>"}}' in words
    assert json.dumps(TOOLS[0]["function"]["parameters"], separators=(",", ":")) in words


def test_without_tools_nothing_is_explained() -> None:
    """A request that offers no tools reaches the model as it is."""
    inner = ScriptedModel([reply_text("ok")])
    messages = [{"role": "user", "content": "hi"}]
    asyncio.run(TextProtocolModel(inner).complete(ModelRequest(messages, [])))
    assert inner.requests[0].messages == messages


def test_explanation_comes_first_where_there_is_no_system_message() -> None:
    """Tools are explained even to a model that was given no system message."""
    inner = ScriptedModel([reply_text("ok")])
    asyncio.run(TextProtocolModel(inner).complete(ModelRequest([{"role": "user", "content": "hi"}], TOOLS)))
    assert [message["role"] for message in inner.requests[0].messages] == ["system", "user"]


def test_fingerprint_tells_the_protocols_apart() -> None:
    """The same model asked in text is another fingerprint, which also covers the words that explain it."""
    inner = ScriptedModel([])
    wrapped = TextProtocolModel(inner).fingerprint
    assert wrapped.protocol == "text"
    assert wrapped.digest != inner.fingerprint.model_copy(update={"protocol": "text"}).digest
    assert wrapped.is_greedy


def test_closing_closes_the_model_behind() -> None:
    """The wrapper holds nothing of its own."""
    inner = ScriptedModel([])
    asyncio.run(TextProtocolModel(inner).close())
    assert inner.is_closed
