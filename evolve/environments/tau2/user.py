"""Who plays the customer: one small protocol, a script and a model behind it.

A dialogue is handed over whole, in OpenAI's form and as the customer sees it: what the agent said has the role
`user`, the customer's own words and calls the role `assistant`. So a user holds no state, and a session repeats.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import orjson

from evolve.environments.tau2.side_model import SideModel
from evolve.environments.tau2.words import STOP
from evolve.errors import ConfigError
from evolve.models.calls import read_call
from evolve.protocols import ModelRequest
from evolve.records import Completion, Json, ProposedCall, Tool


@dataclass(frozen=True, slots=True)
class Utterance:
    """One turn of the customer: words for the agent, or calls on their phone, of which the agent sees nothing."""

    text: str
    calls: tuple[ProposedCall, ...] = ()

    def as_message(self) -> Json:
        """Return the turn as the customer's own message."""
        if not self.calls:
            return {"role": "assistant", "content": self.text}
        calls = [
            {
                "id": call.call_id,
                "type": "function",
                "function": {"name": call.tool, "arguments": call.arguments_text},
            }
            for call in self.calls
        ]
        return {"role": "assistant", "content": self.text, "tool_calls": calls}


class User(Protocol):
    """The customer of one episode."""

    def answer(self, dialogue: Sequence[Json]) -> Utterance:
        """Return the next turn.

        Raises:
            ProviderError: the model behind it cannot be asked.
        """


class ScriptedUser:
    """Gives the replies of a list one after the other, whatever the agent says, and then stops."""

    def __init__(self, replies: Sequence[Utterance]) -> None:
        self._replies = replies

    def answer(self, dialogue: Sequence[Json]) -> Utterance:
        """Return the reply whose turn it is."""
        turn = sum(message["role"] == "assistant" for message in dialogue)
        return self._replies[turn] if turn < len(self._replies) else Utterance(STOP)


class ModelUser:
    """Lets a model play the customer.

    Args:
        model: who is asked.
        system: guidelines and scenario.
        tools: the phone's; empty where the domain has none.
        stream: random stream of a sampled model: task and trial.
    """

    def __init__(self, model: SideModel, system: str, tools: Sequence[Tool], stream: str) -> None:
        self._model = model
        self._system: Json = {"role": "system", "content": system}
        self._tools = [tool.function_schema() for tool in tools]
        self._stream = "" if model.fingerprint.is_greedy else stream

    def answer(self, dialogue: Sequence[Json]) -> Utterance:
        """Ask for the next turn.

        Raises:
            ProviderError: the model cannot be asked, or said and called nothing.
        """
        request = ModelRequest([self._system, *dialogue], self._tools, self._stream)
        completion = self._model.ask(request, is_fine=_is_turn)
        return Utterance(completion.text, completion.calls)


def read_replies(path: Path) -> dict[str, list[Utterance]]:
    """Read a script: official task id to replies, each a text or `{"tool": …, "arguments": {…}}`.

    Raises:
        ConfigError: the file is missing, or something in it is neither; names the task.
    """
    try:
        written = orjson.loads(path.expanduser().read_bytes())
    except OSError as error:
        raise ConfigError(f"the script {path} cannot be read: {error.strerror}") from error
    except orjson.JSONDecodeError as error:
        raise ConfigError(f"the script {path} is no JSON: {error}") from error
    if not isinstance(written, Mapping) or not all(isinstance(replies, list) for replies in written.values()):
        raise ConfigError(f"the script {path} is no object of task ids with lists of replies")
    return {
        name: [_reply(reply, turn, f"{path}, task {name}, reply {turn + 1}") for turn, reply in enumerate(replies)]
        for name, replies in written.items()
    }


def _reply(written: object, turn: int, where: str) -> Utterance:
    if isinstance(written, str) and written.strip():
        return Utterance(written)
    if isinstance(written, Mapping) and written.keys() == {"tool", "arguments"}:
        tool, arguments = written["tool"], written["arguments"]
        if isinstance(tool, str) and isinstance(arguments, Mapping):
            return Utterance("", (read_call(f"u{turn:05d}", tool, dict(arguments)),))
    raise ConfigError(f"{where}: neither a text nor a tool with arguments")


def _is_turn(completion: Completion) -> bool:
    is_whole = completion.malformed is None and completion.finish_reason != "context_full"
    return is_whole and bool(completion.calls or completion.text.strip())
