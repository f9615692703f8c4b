"""One game being played: calls become commands, whatever cannot be done is answered in the engine's own words."""

from __future__ import annotations

from collections.abc import Sequence

from evolve.environments.alfworld.benchmark import GAME_FILE
from evolve.environments.alfworld.games import Game
from evolve.environments.children import Child, ChildPool
from evolve.errors import EnvironmentBroken
from evolve.records import Call, ErrorKind, Json, Observation, Opening, Score, Tool

SCORER_VERSION = "alfworld-1"
PASS_MARK = 1.0
LOAD_TIMEOUT_S = 900.0
ACT_TIMEOUT_S = 300.0
"""Generous: the slowest game known loads for 14 s, and beside a busy local model a small one was seen to take minutes.
An honest game must not break because a machine is busy."""

NOTHING_HAPPENS = "Nothing happens."
NOT_READ_ONLY = "This tool cannot be probed."
SYSTEM = (
    "You are in a household and get a task. Act only by calling take_action, one action per call. Each call is "
    f'answered with what you then see. "{NOTHING_HAPPENS}" means: this action is not possible here, or not in these '
    "words."
)

# Examples and not patterns: a small model takes `move O to R` for the name of a tool.
_FORMS = (
    "go to desk 1; open drawer 2; close drawer 2; take mug 1 from desk 1; move mug 1 to shelf 3; clean mug 1 with "
    "sinkbasin 1; heat mug 1 with microwave 1; cool mug 1 with fridge 1; slice apple 1 with knife 1; use desklamp 1; "
    "examine shelf 3; look; inventory; help"
)

TAKE_ACTION = Tool(
    name="take_action",
    description="Do one action in the household.",
    parameters={
        "type": "object",
        "properties": {"action": {"type": "string", "description": f"Words like: {_FORMS}"}},
        "required": ["action"],
        "additionalProperties": False,
    },
)


class AlfworldSession:
    """A session on one game. It has a child process of its own until it is closed.

    Raises:
        EnvironmentBroken: the engine does not start the game.
    """

    def __init__(self, game: Game, children: ChildPool) -> None:
        self._children = children
        self._child: Child | None = children.take()
        self._is_won = False
        self._admissible: tuple[str, ...] = ()
        try:
            text = self._ask({"load": _write(game, self._child)}, LOAD_TIMEOUT_S)
        except BaseException:
            self.close()
            raise
        self._opening = Opening(system=SYSTEM, user=text, admissible=self._admissible)

    @property
    def opening(self) -> Opening:
        """The system prompt, and the game's first words: the room and the task."""
        return self._opening

    @property
    def tools(self) -> Sequence[Tool]:
        """The one tool."""
        return (TAKE_ACTION,)

    def step(self, call: Call) -> Observation:
        """Give one command to the game.

        Raises:
            EnvironmentBroken: the engine died or hung.
        """
        if self._is_won:
            return self._refuse(ErrorKind.NO_EFFECT)
        if call.tool != TAKE_ACTION.name:
            return self._refuse(ErrorKind.UNKNOWN_TOOL)
        action = call.arguments.get("action")
        if set(call.arguments) != {"action"} or not isinstance(action, str):
            return self._refuse(ErrorKind.INVALID_ARGS)
        text = self._ask({"act": action}, ACT_TIMEOUT_S)
        if text == NOTHING_HAPPENS:
            return self._refuse(ErrorKind.NO_EFFECT)
        return Observation(text=text, done=self._is_won, admissible=self._admissible)

    def say(self, text: str) -> Observation:
        """Answer a plain message: it is no command, so nothing happens."""
        return self._refuse(ErrorKind.NO_EFFECT if self._is_won else ErrorKind.MALFORMED_CALL)

    def probe(self, call: Call) -> Observation:
        """Refuse: the one tool is not read-only, since `look` and `go to` go through it alike."""
        if call.tool != TAKE_ACTION.name:
            return self._refuse(ErrorKind.UNKNOWN_TOOL)
        return Observation(text=NOT_READ_ONLY, error_kind=ErrorKind.REJECTED, admissible=self._admissible)

    def score(self) -> Score:
        """Score 1.0 where the goal was reached, else 0.0, as upstream does."""
        return Score(value=float(self._is_won), success=self._is_won, version=SCORER_VERSION)

    def close(self) -> None:
        """Give the child back; one that still computes is killed."""
        child, self._child = self._child, None
        if child is not None:
            self._children.give_back(child)

    def _ask(self, question: Json, timeout_s: float) -> str:
        if self._child is None:
            raise EnvironmentBroken("the session is closed")
        seen = self._child.ask(question, timeout_s=timeout_s)
        self._is_won = seen["won"]
        self._admissible = tuple(seen["admissible"])
        text: str = seen["text"]
        return text

    def _refuse(self, kind: ErrorKind) -> Observation:
        return Observation(text=NOTHING_HAPPENS, error_kind=kind, done=self._is_won, admissible=self._admissible)


def _write(game: Game, child: Child) -> str:
    """Put the game where the engine can read it: in the child's folder, over the one before."""
    path = child.folder / GAME_FILE
    path.write_bytes(game.content())
    return str(path)
