"""A scripted model in the three dialects that coding agents speak: it has an agent read, edit, check and propose."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Json = dict[str, Any]
Event = tuple[str, Json]
PROMPT_TOKENS, COMPLETION_TOKENS = 100, 10
DONE = "I have proposed a note."


@dataclass(frozen=True)
class Deed:
    """One call of a tool: the names that agents have for it, and its arguments under each agent's names."""

    tools: tuple[str, ...]
    arguments: Json


def read(path: str) -> Deed:
    """Read a file."""
    shell = f"cat {path}"
    return Deed(("Read", "read", "exec_command"), {"file_path": path, "filePath": path, "cmd": shell})


def write(path: str, content: str) -> Deed:
    """Write a file."""
    shell = f"cat > {path} <<'END'\n{content}\nEND"
    return Deed(
        ("Write", "write", "exec_command"), {"file_path": path, "filePath": path, "content": content, "cmd": shell}
    )


def run(command: str) -> Deed:
    """Run a command."""
    return Deed(
        ("Bash", "bash", "exec_command"), {"command": command, "cmd": command, "description": "check the harness"}
    )


@dataclass
class Endpoint:
    """What the model was asked: the bodies of requests with tools, and the credentials that came along."""

    url: str = ""
    asked: list[Json] = field(default_factory=list)
    credentials: set[str] = field(default_factory=set)


@contextmanager
def scripted_endpoint(deeds: list[Deed], *, refusal: str = "") -> Iterator[Endpoint]:
    """Serve the script: deed after deed, each when the result of the one before came back, then words.

    With a `refusal` every credential is refused in these words.
    """
    endpoint = Endpoint()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(endpoint, deeds, refusal))
    endpoint.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield endpoint
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _handler(endpoint: Endpoint, deeds: list[Deed], refusal: str) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *words: object) -> None:
            pass

        def do_GET(self) -> None:
            self._say(404, "application/json", b"{}")

        def do_POST(self) -> None:
            body: Json = json.loads(self.rfile.read(int(self.headers["content-length"])))
            for header in ("authorization", "x-api-key"):
                endpoint.credentials |= {self.headers[header]} if self.headers[header] else set()
            if body.get("tools"):
                endpoint.asked.append(body)
            if refusal:
                error = {"type": "error", "error": {"type": "authentication_error", "message": refusal}}
                return self._say(401, "application/json", json.dumps(error).encode())
            if not self.path.startswith("/"):  # llama.cpp, for one, knows no other form
                return self._say(404, "application/json", b"{}")
            dialect = next(made for path, made in DIALECTS.items() if path in self.path)
            text = "".join(_written(name, data) for name, data in dialect(body, deeds))
            return self._say(200, "text/event-stream", text.encode())

        def _say(self, status: int, kind: str, content: bytes) -> None:
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    return Handler


def _written(name: str, data: Json) -> str:
    line = f"event: {name}\n" if name else ""
    return f"{line}data: {json.dumps(data)}\n\n"


def _next(deeds: list[Deed], answered: int, names: Mapping[str, Json]) -> tuple[str, Json] | None:
    """Return the next call in the words of the agent's own tools; None where there is nothing left to do."""
    if not names or answered >= len(deeds):
        return None
    deed = deeds[answered]
    name = next(tool for tool in deed.tools if tool in names)
    wanted = names[name]["properties"]
    return name, {key: value for key, value in deed.arguments.items() if key in wanted}


def messages(body: Json, deeds: list[Deed]) -> list[Event]:
    """Anthropic's Messages, streamed."""
    contents = [message["content"] for message in body["messages"] if isinstance(message["content"], list)]
    answered = sum(part["type"] == "tool_result" for content in contents for part in content)
    call = _next(deeds, answered, {tool["name"]: tool["input_schema"] for tool in body.get("tools", ())})
    if call is None:
        block: Json = {"type": "text", "text": ""}
        delta: Json = {"type": "text_delta", "text": DONE}
    else:
        block = {"type": "tool_use", "id": f"toolu_{answered}", "name": call[0], "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(call[1])}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": body["model"], "content": []}
    counted = {"input_tokens": PROMPT_TOKENS, "output_tokens": 1}
    events = [
        {"type": "message_start", "message": {**message, "stop_reason": None, "stop_sequence": None, "usage": counted}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn" if call is None else "tool_use", "stop_sequence": None},
            "usage": {"output_tokens": COMPLETION_TOKENS},
        },
        {"type": "message_stop"},
    ]
    return [(str(event["type"]), event) for event in events]


def chat_completions(body: Json, deeds: list[Deed]) -> list[Event]:
    """OpenAI's chat completions, streamed."""
    answered = sum(message["role"] == "tool" for message in body["messages"])
    tools = {tool["function"]["name"]: tool["function"]["parameters"] for tool in body.get("tools", ())}
    call = _next(deeds, answered, tools)
    delta: Json = {"role": "assistant", "content": DONE}
    if call is not None:
        function = {"name": call[0], "arguments": json.dumps(call[1])}
        listed = [{"index": 0, "id": f"call_{answered}", "type": "function", "function": function}]
        delta = {"role": "assistant", "content": None, "tool_calls": listed}
    finish = "stop" if call is None else "tool_calls"
    base = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": body["model"]}
    usage = {
        "prompt_tokens": PROMPT_TOKENS,
        "completion_tokens": COMPLETION_TOKENS,
        "total_tokens": PROMPT_TOKENS + COMPLETION_TOKENS,
    }
    return [
        ("", {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}),
        ("", {**base, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}),
        ("", {**base, "choices": [], "usage": usage}),
    ]


def responses(body: Json, deeds: list[Deed]) -> list[Event]:
    """OpenAI's Responses, streamed."""
    answered = sum(item["type"] == "function_call_output" for item in body["input"])
    tools = {tool["name"]: tool["parameters"] for tool in body.get("tools", ()) if tool["type"] == "function"}
    call = _next(deeds, answered, tools)
    if call is None:
        text = {"type": "output_text", "text": DONE, "annotations": []}
        item: Json = {"type": "message", "id": "m1", "role": "assistant", "status": "completed", "content": [text]}
    else:
        item = {"type": "function_call", "id": f"f{answered}", "call_id": f"call_{answered}", "name": call[0]}
        item |= {"arguments": json.dumps(call[1]), "status": "completed"}
    usage = {
        "input_tokens": PROMPT_TOKENS,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": COMPLETION_TOKENS,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": PROMPT_TOKENS + COMPLETION_TOKENS,
    }
    response = {"id": f"resp_{answered}", "object": "response", "created_at": 1, "model": body["model"]}
    events = [
        {"type": "response.created", "response": {**response, "status": "in_progress", "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {
            "type": "response.completed",
            "response": {**response, "status": "completed", "output": [item], "usage": usage},
        },
    ]
    return [(str(event["type"]), event) for event in events]


DIALECTS = {"/messages": messages, "/chat/completions": chat_completions, "/responses": responses}
