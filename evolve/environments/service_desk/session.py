"""One ticket being worked on: the order of checks, the refusals given, and the closing."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy

import orjson

from evolve.environments.service_desk.arguments import complaint
from evolve.environments.service_desk.cases import Draft
from evolve.environments.service_desk.desk import Desk
from evolve.environments.service_desk.gold import gold_desk
from evolve.environments.service_desk.policy import WRITE_TOOLS, Attempt, broken_rule, reference
from evolve.environments.service_desk.scoring import Closing, score
from evolve.environments.service_desk.tools import CLOSE, TABLE, TOOLS
from evolve.records import Call, ErrorKind, Json, Observation, Opening, Score, Tool

SYSTEM = (
    "You work at a shop's service desk. The ticket is all that the customer says. Do what it asks if policy allows it, "
    "look up what you do not know, and always end with close_ticket. resolution: done, refused (policy forbids it) or "
    "escalated (a team took over). In the statement, quote the answer that settled the ticket, with its id and amount, "
    "or its reason code and ref. "
    "Refund the item or fee concerned, not the order. Goodwill credit: what is asked, up to the cap."
)
NO_TOOL = "No tool was called. The customer sees nothing until close_ticket."
CLOSED = "The ticket is closed."


class DeskSession:
    """A session on one ticket; its database is its own."""

    def __init__(self, text: str, draft: Draft) -> None:
        self._opening = Opening(system=SYSTEM, user=text)
        self._draft = draft
        self._desk = deepcopy(draft.desk)
        self._refusals: set[tuple[str, str]] = set()
        self._closing: Closing | None = None

    @property
    def opening(self) -> Opening:
        """The system prompt and the ticket."""
        return self._opening

    @property
    def tools(self) -> Sequence[Tool]:
        """The twelve tools of the desk."""
        return TOOLS

    def step(self, call: Call) -> Observation:
        """Run one call: known tool, valid arguments, policy, then the tool itself."""
        answer = self._closed() or self._check(call)
        if answer is not None:
            return answer
        result = _run(self._desk, call)
        if call.tool == CLOSE:
            self._closing = Closing(call.arguments["resolution"], call.arguments["statement"], self._refusals)
        return Observation(text=_compact(result), done=call.tool == CLOSE)

    def say(self, text: str) -> Observation:
        """Take a plain message, which nobody reads."""
        return self._closed() or Observation(text=NO_TOOL, error_kind=ErrorKind.MALFORMED_CALL)

    def probe(self, call: Call) -> Observation:
        """Run a read-only call; it does not count as a step."""
        entry = TABLE.get(call.tool)
        if entry is not None and not entry.tool.read_only:
            return Observation(text=f"{call.tool} is not read-only.", error_kind=ErrorKind.REJECTED)
        return self._check(call) or Observation(text=_compact(_run(self._desk, call)))

    def score(self) -> Score:
        """Score the present state against the gold one."""
        is_gold = self._desk.digest == gold_desk(self._draft).digest
        return score(self._closing, is_gold, self._draft.gold)

    def close(self) -> None:
        """Release nothing: a session is memory only."""

    def _closed(self) -> Observation | None:
        if self._closing is None:
            return None
        return Observation(text=CLOSED, error_kind=ErrorKind.NO_EFFECT, done=True)

    def _check(self, call: Call) -> Observation | None:
        entry = TABLE.get(call.tool)
        if entry is None:
            text = f"There is no tool {call.tool[:40]}. Tools: {', '.join(TABLE)}."
            return Observation(text=text, error_kind=ErrorKind.UNKNOWN_TOOL)
        wrong = complaint(entry.tool, call.arguments, self._desk)
        if wrong is not None:
            return Observation(text=f"Invalid arguments: {wrong}", error_kind=ErrorKind.INVALID_ARGS)
        return self._refusal(call) if call.tool in WRITE_TOOLS else None

    def _refusal(self, call: Call) -> Observation | None:
        attempt = Attempt(call, self._opening.user, self._desk, self._draft.sender)
        rule = broken_rule(attempt)
        if rule is None:
            return None
        if rule.code:
            self._refusals.add((rule.code, reference(attempt.ticket, call)))
        return rule.refuse(attempt)


def _run(desk: Desk, call: Call) -> Json | str:
    return TABLE[call.tool].run(desk, call.arguments)


def _compact(result: Json | str) -> str:
    return result if isinstance(result, str) else orjson.dumps(result).decode()
