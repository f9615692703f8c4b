"""One upstream environment in one session: runs calls, and tells what they changed.

The text of an answer is upstream's, byte for byte. What kind of error it is comes from what was called and with
what, never from that text.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Literal

from evolve.environments.tau2.calculator import is_too_large
from evolve.environments.tau2.rows import Rows
from evolve.environments.tau2.upstream import module
from evolve.records import Call, ErrorKind, Json, Tool

Requestor = Literal["assistant", "user"]
State = dict[str, str | None]

TOO_LARGE = "Error: int too large to convert to float"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a tool answered; `is_error` is upstream's own flag, which its limit of errors counts."""

    text: str
    is_error: bool
    error_kind: ErrorKind | None


class World:
    """A desk, and in telecom a phone, at the start of one task.

    Args:
        environment: made for this session alone.
        task: as the benchmark has it; its initial state is set here.
    """

    def __init__(self, environment: Any, task: Json) -> None:
        self._environment = environment
        tasks = module("data_model.tasks")
        initial = tasks.InitialState.model_validate(task.get("initial_state") or _NO_STATE)
        environment.set_state(initial.initialization_data, initial.initialization_actions, [])

    def run(self, call: Call, requestor: Requestor = "assistant") -> Answer:
        """Run a call of the agent, or of the customer on the phone."""
        kit = self._kit(call.tool, requestor)
        kind = self._kind(call.tool, requestor)
        before = self.state() if kind == "write" else None
        with self._reading(kind == "read"):
            text, is_error = self._respond(call, requestor)
        if is_error:
            return Answer(text, True, _error_kind(call, kit))
        changed_nothing = before is not None and before == self.state()
        return Answer(text, False, ErrorKind.NO_EFFECT if changed_nothing else None)

    def probe(self, call: Call) -> Answer:
        """Run a call of the agent that only reads; unlike after a step, desk and phone are not brought in line."""
        if _is_too_large(call):
            return Answer(TOO_LARGE, True, ErrorKind.REJECTED)
        try:
            with self._reading(True):
                result = self._environment.make_tool_call(call.tool, **deepcopy(call.arguments))
            return Answer(self._environment.to_json_str(result), False, None)
        except Exception as error:  # as upstream does where it runs a call
            return Answer(f"Error: {error}", True, _error_kind(call, self._kit(call.tool, "assistant")))

    def replay(self, actions: list[Json]) -> None:
        """Run gold actions as the benchmark's scorer does: errors are passed over, nothing is brought in line."""
        for action in actions:
            name: str = action["name"]
            requestor: Requestor = action.get("requestor") or "assistant"
            with self._reading(self._kind(name, requestor) == "read"), suppress(Exception):  # 13 of retail's gold fail
                self._environment.make_tool_call(name, requestor, **deepcopy(action["arguments"]))

    def state(self) -> State:
        """Return what differs from the shared database, by table and row; of small databases, all there is."""
        kits = {"desk": self._environment.tools, "phone": self._environment.user_tools}
        return {key: row for name, kit in kits.items() if kit is not None for key, row in _rows(name, kit.db)}

    def hashes(self) -> tuple[str, str | None]:
        """Return the hashes of both databases as upstream computes them."""
        return self._environment.get_db_hash(), self._environment.get_user_db_hash()

    def holds(self, assertion: Json) -> bool:
        """Say whether a predicate on the present state holds. Predicates read, so nothing is brought in line after."""
        kit = self._environment.user_tools if assertion["env_type"] == "user" else self._environment.tools
        return bool(getattr(kit, assertion["func_name"])(**assertion["arguments"]) == assertion["assert_value"])

    def _respond(self, call: Call, requestor: Requestor) -> tuple[str, bool]:
        if _is_too_large(call):
            return TOO_LARGE, True
        message = module("data_model.message")
        wanted = message.ToolCall(name=call.tool, arguments=deepcopy(call.arguments), requestor=requestor)
        try:
            answer = self._environment.get_response(wanted)
        except (TypeError, ValueError) as error:  # an answer that upstream cannot write as JSON
            return f"Error: {error}", True
        return answer.content, answer.error

    def _kit(self, tool: str, requestor: Requestor) -> Any:
        """Return the tools among which upstream looks for one; None where it will not find it."""
        desk, phone = self._environment.tools, self._environment.user_tools
        kits = [phone] if requestor == "user" else [desk, *([phone] if self._environment.solo_mode else [])]
        return next((kit for kit in kits if kit is not None and kit.has_tool(tool)), None)

    def _kind(self, tool: str, requestor: Requestor) -> str:
        """Return read, write, think or generic, as upstream marks a tool; empty where it will not find it."""
        kit = self._kit(tool, requestor)
        return "" if kit is None else str(kit.tool_type(tool).value)

    @contextmanager
    def _reading(self, is_reading: bool) -> Iterator[None]:
        tables = [table for _, table in self._environment.tools.db if isinstance(table, Rows)]
        for table in tables:
            table.is_reading = is_reading
        try:
            yield
        finally:
            for table in tables:
                table.is_reading = False


def _is_too_large(call: Call) -> bool:
    return call.tool == "calculate" and is_too_large(call.arguments.get("expression"))


def _error_kind(call: Call, kit: Any) -> ErrorKind:
    """Tell what was wrong with a call that failed: no such tool, arguments that do not fit, or a rule."""
    if kit is None:
        return ErrorKind.UNKNOWN_TOOL
    expected = module("environment.tool").as_tool(kit.tools[call.tool]).params
    if call.arguments.keys() - expected.model_fields.keys():
        return ErrorKind.INVALID_ARGS
    try:
        expected.model_validate(call.arguments)
    except ValueError:
        return ErrorKind.INVALID_ARGS
    return ErrorKind.REJECTED


_NO_STATE: Json = {"initialization_data": None, "initialization_actions": None, "message_history": None}


def tools_of(environment: Any, *, with_phone: bool) -> list[Tool]:
    """Return the tools of the desk, and with the phone those of the customer, as the agent is offered them."""
    kits = [environment.tools, *([environment.user_tools] if with_phone else [])]
    return [_tool(tool, kit.tool_type(name).value) for kit in kits for name, tool in kit.get_tools().items()]


def phone_tools_of(environment: Any) -> list[Tool]:
    """Return the tools that a simulated customer is offered; none where the domain has no phone."""
    kit = environment.user_tools
    return [] if kit is None else [_tool(tool, kit.tool_type(name).value) for name, tool in kit.get_tools().items()]


def _tool(tool: Any, kind: str) -> Tool:
    function = tool.openai_schema["function"]
    is_pure = kind == "read" or function["name"] == "calculate"
    return Tool(
        name=function["name"],
        description=function["description"],
        parameters=function["parameters"],
        read_only=is_pure,
    )


def _rows(name: str, database: Any) -> Iterator[tuple[str, str | None]]:
    for field, table in database:
        if not isinstance(table, Rows):
            yield f"{name}.{field}", _text(database.model_dump(include={field}))
            continue
        for key, row, shared in table.touched():
            if (written := _text(row)) != _text(shared):
                yield f"{name}.{field}.{key}", written


def _text(value: Any) -> str | None:
    """Return a value as upstream's hash reads it."""
    if value is None:
        return None
    plain = value.model_dump() if hasattr(value, "model_dump") else value
    return json.dumps(plain, sort_keys=True, default=str)
