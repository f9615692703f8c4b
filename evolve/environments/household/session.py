"""One task being worked on: turns calls into moves in a house, and says in few words what came of them."""

from __future__ import annotations

from collections.abc import Sequence

from evolve.environments.household.house import House
from evolve.environments.household.problems import Problem
from evolve.records import Call, ErrorKind, Observation, Opening, Score, Tool

SCORER_VERSION = "household-1"
SYSTEM = "You do chores in a house. Act only by calling take_action, one action per call."

NOTHING_HAPPENS = "Nothing happens."
UNKNOWN_TOOL = "Unknown tool."
INVALID_ARGUMENTS = "Invalid arguments."
NOT_A_CALL = "Nothing happens. Call take_action."
NOT_READ_ONLY = "This tool cannot be probed."
IS_OVER = "The task is over."
COMPLETE = "Task complete."

# Examples: a small model takes patterns such as `put O in R` for names of tools.
_FORMS = (
    "go to desk 1; open box 1; close box 1; take mug 2 from desk 1; put mug 2 in box 1; clean mug 2 with sink 1; "
    "heat mug 2 with microwave 1; cool mug 2 with fridge 1; use desklamp 1; look; inventory"
)

TAKE_ACTION = Tool(
    name="take_action",
    description="Do one action in the house.",
    parameters={
        "type": "object",
        "properties": {"action": {"type": "string", "description": f"Words like: {_FORMS}"}},
        "required": ["action"],
        "additionalProperties": False,
    },
)


class HouseholdSession:
    """A session on one problem. It counts no steps: the step limit is for whoever runs the agent."""

    def __init__(self, problem: Problem) -> None:
        self._goal = problem.goal
        self._house = House(problem.world)
        self._moves = self._house.moves()
        self._is_done = False
        self._opening = Opening(
            system=SYSTEM,
            user=f"You are in a room with {', '.join(problem.world.inside)}.\nTask: {problem.task.text}",
            admissible=tuple(self._moves),
        )

    @property
    def opening(self) -> Opening:
        """The system prompt, the receptacles and the task."""
        return self._opening

    @property
    def tools(self) -> Sequence[Tool]:
        """The one tool."""
        return (TAKE_ACTION,)

    def step(self, call: Call) -> Observation:
        """Run one action; whatever cannot be done changes nothing and says so."""
        if self._is_done:
            return self._refuse(IS_OVER, ErrorKind.REJECTED)
        if call.tool != TAKE_ACTION.name:
            return self._refuse(UNKNOWN_TOOL, ErrorKind.UNKNOWN_TOOL)
        if set(call.arguments) != {"action"} or not isinstance(call.arguments["action"], str):
            return self._refuse(INVALID_ARGUMENTS, ErrorKind.INVALID_ARGS)
        move = self._moves.get(call.arguments["action"].strip())
        if move is None:
            return self._refuse(NOTHING_HAPPENS, ErrorKind.NO_EFFECT)
        text = move()
        self._moves = self._house.moves()
        self._is_done = self._goal.is_reached(self._house)
        return self._observe(f"{text} {COMPLETE}" if self._is_done else text)

    def say(self, text: str) -> Observation:
        """Answer a plain message: nobody listens."""
        if self._is_done:
            return self._refuse(IS_OVER, ErrorKind.REJECTED)
        return self._refuse(NOT_A_CALL, ErrorKind.MALFORMED_CALL)

    def probe(self, call: Call) -> Observation:
        """Refuse: the one tool is not read-only."""
        if call.tool != TAKE_ACTION.name:
            return self._refuse(UNKNOWN_TOOL, ErrorKind.UNKNOWN_TOOL)
        return self._refuse(NOT_READ_ONLY, ErrorKind.REJECTED)

    def score(self) -> Score:
        """Score 1.0 where the goal was reached, else 0.0; `parts` shows sub-goals that hold and do not count."""
        value = 1.0 if self._is_done else 0.0
        return Score(value=value, success=self._is_done, parts=self._goal.parts(self._house), version=SCORER_VERSION)

    def close(self) -> None:
        """Release nothing: a session holds only memory."""

    def _observe(self, text: str) -> Observation:
        admissible = () if self._is_done else tuple(self._moves)
        return Observation(text=text, done=self._is_done, admissible=admissible)

    def _refuse(self, text: str, kind: ErrorKind) -> Observation:
        return self._observe(text).model_copy(update={"error_kind": kind})
