"""One task being worked on: the agent's calls and messages, the customer's turns in between, and how it ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from evolve.environments.tau2.options import Limits
from evolve.environments.tau2.scoring import Evidence, Scorer
from evolve.environments.tau2.user import User, Utterance
from evolve.environments.tau2.words import EMPTY_TEXT, ENDED, GREETING, STOP, TEXT_IN_SOLO, UNREAD, USER_STOPS
from evolve.environments.tau2.world import Answer, World
from evolve.records import Call, ErrorKind, Json, Observation, Opening, ProposedCall, Score, Tool

DONE_TOOL = "done"
WRONG_DONE = "Error: done() got an unexpected keyword argument '{name}'"
NO_ARGUMENTS = "The arguments of {tool} are not a JSON object."

End = Literal["agent_stop", "user_stop", "max_steps", "too_many_errors"]


@dataclass(frozen=True, slots=True)
class Setting:
    """How a session is played: the same for all tasks of an environment.

    Attributes:
        is_solo: the agent holds the customer's phone and may not speak.
        limits: how an episode ends by itself.
    """

    system: str
    tools: tuple[Tool, ...]
    is_solo: bool
    limits: Limits


class Tau2Session:
    """A session on one task.

    Args:
        world: at the start of the task, this session's own.
        text: the ticket; with a customer, what they say first takes its place.
        user: None: there is nobody to talk to, and the agent ends the session with `done`.

    Raises:
        ProviderError: the model that plays the customer cannot be asked for the first message.
    """

    def __init__(self, setting: Setting, world: World, text: str, *, user: User | None, scorer: Scorer) -> None:
        self._setting = setting
        self._world = world
        self._user = user
        self._scorer = scorer
        self._calls: list[Call] = []
        self._conversation: list[Json] = []
        self._dialogue: list[Json] = []
        self._errors = 0
        self._end: End | None = None
        self._count = -1 if user is None else 0  # without a customer, upstream does not count the agent's first turn
        first = text if user is None else self._hear(GREETING)
        self._opening = Opening(system=setting.system, user=first)

    @property
    def opening(self) -> Opening:
        """Instruction and policy, and the ticket or the customer's first message."""
        return self._opening

    @property
    def tools(self) -> Sequence[Tool]:
        """The tools of the desk; in solo mode those of the phone too; without a customer, `done`."""
        return self._setting.tools

    def step(self, call: Call) -> Observation:
        """Run one call."""
        if self._end is not None:
            return _ENDED
        self._count += 1
        if call.tool == DONE_TOOL and self._user is None:
            return self._done(call)
        self._count += 1
        answer = self._run(call)
        self._conversation.append({"role": "tool", "content": answer.text})
        self._check_limits()
        return Observation(text=answer.text, error_kind=answer.error_kind, done=self._end is not None)

    def say(self, text: str) -> Observation:
        """Take a message: the customer's answer to it, or what stands in its place where nobody answers."""
        if self._end is not None:
            return _ENDED
        self._count += 1
        if self._user is None:
            return self._unanswered(text)
        if not text.strip():
            self._check_limits()
            return Observation(text=EMPTY_TEXT, error_kind=ErrorKind.MALFORMED_CALL, done=self._end is not None)
        self._check_limits()
        if self._end is not None:
            self._note("assistant", text)
            return Observation(text=ENDED, error_kind=ErrorKind.TIMEOUT, done=True)
        reply = self._hear(text)
        return Observation(text=reply, done=self._end is not None)

    def probe(self, call: Call) -> Observation:
        """Run a read-only call without a step being counted."""
        tool = next((tool for tool in self._setting.tools if tool.name == call.tool), None)
        if tool is not None and not tool.read_only:
            return Observation(text=f"{call.tool} is not read-only.", error_kind=ErrorKind.REJECTED)
        answer = self._world.probe(call)
        return Observation(text=answer.text, error_kind=answer.error_kind)

    def score(self) -> Score:
        """Score the present state.

        Raises:
            ProviderError: the judge cannot be asked.
        """
        is_ended = self._end in ("agent_stop", "user_stop")
        return self._scorer.score(Evidence(self._world, is_ended, self._calls, self._conversation))

    def database_hashes(self) -> tuple[str, str | None]:
        """Return the hashes of desk and phone as upstream computes them: slow, for comparison with recorded ones."""
        return self._world.hashes()

    def close(self) -> None:
        """Release nothing: a session is memory only."""

    def _done(self, call: Call) -> Observation:
        if call.arguments:
            text = WRONG_DONE.format(name=next(iter(call.arguments)))
            return Observation(text=text, error_kind=ErrorKind.INVALID_ARGS)
        self._end = "agent_stop"
        self._check_limits()
        return Observation(text=STOP, done=True)

    def _unanswered(self, text: str) -> Observation:
        self._count += 1
        self._check_limits()
        is_over = self._end is not None
        if not text.strip():
            return Observation(text=EMPTY_TEXT, error_kind=ErrorKind.MALFORMED_CALL, done=is_over)
        if self._setting.is_solo:
            return Observation(text=TEXT_IN_SOLO, error_kind=ErrorKind.MALFORMED_CALL, done=is_over)
        self._note("assistant", text)
        return Observation(text=UNREAD, done=is_over)

    def _hear(self, text: str) -> str:
        """Tell the customer something and return what they say to it, after what they do on their phone."""
        assert self._user is not None
        self._note("assistant", text)
        self._dialogue.append({"role": "user", "content": text})
        while True:
            turn = self._user.answer(self._dialogue)
            self._dialogue.append(turn.as_message())
            self._count += 1
            if not turn.calls:
                return self._spoken(turn)
            for call in turn.calls:
                self._dial(call)
            self._count += 1
            self._check_limits()
            if self._end is not None:
                return ENDED

    def _spoken(self, turn: Utterance) -> str:
        self._note("user", turn.text)
        if any(stop in turn.text for stop in USER_STOPS):
            self._end = "user_stop"
        self._check_limits()
        return turn.text

    def _dial(self, proposed: ProposedCall) -> None:
        """Run a call of the customer; the agent sees neither the call nor the answer."""
        if proposed.arguments is None:
            self._errors += 1
            text = NO_ARGUMENTS.format(tool=proposed.tool)
        else:
            text = self._run(Call(tool=proposed.tool, arguments=proposed.arguments), is_user=True).text
        self._dialogue.append({"role": "tool", "tool_call_id": proposed.call_id, "content": text})

    def _run(self, call: Call, *, is_user: bool = False) -> Answer:
        self._calls.append(call)
        answer = self._world.run(call, "user" if is_user else "assistant")
        self._errors += answer.is_error
        return answer

    def _check_limits(self) -> None:
        """End the session where a limit is reached; as upstream has it, even one that was just ended well."""
        if self._count >= self._setting.limits.max_steps:
            self._end = "max_steps"
        if self._errors >= self._setting.limits.max_errors:
            self._end = "too_many_errors"

    def _note(self, role: str, text: str) -> None:
        self._conversation.append({"role": role, "content": text})


_ENDED = Observation(text=ENDED, error_kind=ErrorKind.NO_EFFECT, done=True)
