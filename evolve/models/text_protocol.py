"""Tool calls written as text, for models without tool calling. The records behind it are the same.

A call is one JSON object with a tool and its arguments, as the whole reply or in its one fenced block.
Whatever else a model writes is a plain message; mending it is the harness's business.
"""

from __future__ import annotations

import re
from functools import cached_property

import orjson

from evolve import prompts
from evolve.models.calls import call_id, json_object, read_call
from evolve.protocols import Model, ModelRequest
from evolve.records import Completion, Json, ModelFingerprint, ProposedCall, digest_of

TEMPLATE = "text_protocol.md.j2"

_FENCE = re.compile(r"^```[a-z]*[ \t]*\n(.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)


class TextProtocolModel:
    """A model that is told of the tools in its system message and answers in text."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self._explained: tuple[list[Json], str] = ([], "")

    @cached_property
    def fingerprint(self) -> ModelFingerprint:
        """The model's own, with the protocol and the words that explain it."""
        own = self.model.fingerprint
        words = digest_of(explanation([]))
        return own.model_copy(update={"protocol": "text", "sampling": own.sampling | {"text_protocol": words}})

    async def complete(self, request: ModelRequest) -> Completion:
        """Answer one request.

        Raises:
            ProviderError: as the model behind it does.
        """
        messages = as_text(request.messages, self._explanation(request.tools))
        asked = ModelRequest(messages, [], request.stream, request.is_first)
        return with_call(await self.model.complete(asked), turn=len(request.messages))

    async def close(self) -> None:
        """Close the model behind it."""
        await self.model.close()

    def _explanation(self, tools: list[Json]) -> str:
        """Return the words on the tools, rendered once while they stay the same."""
        if self._explained[0] != tools:
            self._explained = (tools, explanation(tools))
        return self._explained[1]


def explanation(tools: list[Json]) -> str:
    """Return the words that tell a model of its tools and of how to call one."""
    functions = [tool["function"] for tool in tools]
    return prompts.render(TEMPLATE, tools=[_described(function) for function in functions]).strip()


def _described(function: Json) -> Json:
    """Return what the template tells of a tool: small models follow a form better than a schema."""
    parameters = function.get("parameters") or {}
    values = {name: f"<{schema.get('type', 'value')}>" for name, schema in parameters.get("properties", {}).items()}
    return {
        "name": function["name"],
        "description": function.get("description", ""),
        "form": _json({"tool": function["name"], "arguments": values}),
        "schema": _json(parameters),
    }


def as_text(messages: list[Json], explained: str) -> list[Json]:
    """Return a conversation without tools and tool roles. Messages in a row by the user become one.

    Args:
        messages: in OpenAI's form.
        explained: what stands at the end of the system message; empty: there are no tools.
    """
    written: list[Json] = []
    for message in messages:
        role = "user" if message["role"] == "tool" else message["role"]
        words = _words(message)
        if role == "user" and written and written[-1]["role"] == "user":
            written[-1] = {"role": "user", "content": f"{written[-1]['content']}\n\n{words}"}
        else:
            written.append({"role": role, "content": words})
    return _with_system(written, explained) if explained else written


def with_call(completion: Completion, *, turn: int) -> Completion:
    """Return the completion with the call that its text is, or as it was.

    Args:
        completion: as the model wrote it.
        turn: messages in the request; the call is named after it.
    """
    fences = list(_FENCE.finditer(completion.text))
    body = fences[0].group(1) if len(fences) == 1 else completion.text
    call = _read(body, turn)
    if call is None:
        return completion
    rest = completion.text.replace(fences[0].group(0), "").strip() if fences else ""
    return completion.model_copy(update={"text": rest, "calls": (call,), "finish_reason": "tool_calls"})


def _read(text: str, turn: int) -> ProposedCall | None:
    written = json_object(text)
    if written is None or written.keys() != {"tool", "arguments"}:
        return None
    if not isinstance(written["tool"], str) or not isinstance(written["arguments"], dict):
        return None
    return read_call(call_id(turn, 0), written["tool"], written["arguments"])


def _words(message: Json) -> str:
    parts = [message.get("content") or ""]
    for call in message.get("tool_calls") or ():
        function = call["function"]
        arguments = json_object(function["arguments"])
        written = function["arguments"] if arguments is None else arguments
        parts.append(_json({"tool": function["name"], "arguments": written}))
    return "\n".join(part for part in parts if part)


def _with_system(messages: list[Json], explained: str) -> list[Json]:
    """Return the messages with the words at the end of the system message, which comes first."""
    if messages and messages[0]["role"] == "system":
        return [{"role": "system", "content": f"{messages[0]['content']}\n\n{explained}"}, *messages[1:]]
    return [{"role": "system", "content": explained}, *messages]


def _json(value: Json) -> str:
    """Return JSON for a model to read. Jinja's own filter would escape it for HTML."""
    return orjson.dumps(value).decode()
