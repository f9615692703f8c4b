"""One task being worked on in a sandbox: the tools, the benchmark's own strings, and the commitment."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256

from evolve.environments.os_interaction.problems import Problem
from evolve.environments.os_interaction.sandbox import Outcome, Sandbox
from evolve.environments.os_interaction.scoring import nothing_committed, score
from evolve.errors import EnvironmentBroken
from evolve.records import Call, ErrorKind, Observation, Opening, Score, Tool

SYSTEM = (
    "You work on a Linux machine as root. Each problem is either a question about the machine or a change to make on "
    "it. In each turn think first, then call exactly one tool; text without a call does nothing. Scripts must not wait "
    "for input. Long output is cut, and getting at the rest is up to you. When the change is made, or something is "
    "missing that you would need, call finish_action: nothing more will be told. When you know the answer, call "
    "answer_action: writing it as text does not count. Answer with the exact value, such as a single number, never "
    "with a sentence."
)
OUTPUT = "The output of the OS:\n\n"
EMPTY = "The output of the OS is empty."
CUT = "\n[truncated because the output is too long]"
NOT_TEXT = "OS Environment output cannot be decoded as UTF-8"
NO_CALL = "No executable tool calls found. Please call a tool instead"
BAD_CALL = "Invalid function call. Please call a tool instead"
LATE = "\n[stopped after {:g} seconds; the next script gets a fresh shell]"
IS_OVER = "The problem is closed."
NOT_PROBED = "No tool here can be probed: all may change the machine."
LONGEST, KEPT = 800, 780
OWN_S = 120.0  # for set-up and checks: a slow machine is not the agent's fault
TERMINAL = re.compile(rb"\x1b\[[0-9;?]*[a-zA-Z]|\x1b\][0-9]*;[^\x07]*\x07|\x07")


def _tool(name: str, argument: str, description: str, meaning: str) -> Tool:
    properties = {argument: {"type": "string", "description": meaning}}
    parameters = {"type": "object", "properties": properties, "required": [argument], "additionalProperties": False}
    return Tool(name=name, description=description, parameters=parameters)


TOOLS = (
    _tool("bash_action", "script", "Run a bash script on the machine.", "The script."),
    _tool("finish_action", "thought", "End: the change is made, or cannot be.", "Why this is the end."),
    _tool("answer_action", "answer", "Answer the question; this ends the problem.", "The answer, exactly."),
)
ARGUMENT = {tool.name: tool.parameters["required"][0] for tool in TOOLS}


class OsSession:
    """A session in a sandbox of its own, which `close` ends."""

    def __init__(self, problem: Problem, sandbox: Sandbox, timeout_s: float) -> None:
        self._opening = Opening(system=SYSTEM, user=problem.description.strip())
        self._problem = problem
        self._sandbox = sandbox
        self._timeout_s = timeout_s
        self._committed: tuple[object] | None = None
        self._score: Score | None = None

    def prepare(self) -> None:
        """Run what sets the task up. As upstream's own images differ, a script that fails does not end the task.

        Raises:
            EnvironmentBroken: a script did not come to an end, or the sandbox has ended.
        """
        seeded = f"RANDOM={_seed(self._problem.task_id)}\n"
        scripts = [replace(s, code=seeded + s.code) if s.language == "bash" else s for s in self._problem.init]
        for script in (*scripts, self._problem.start):
            if script is not None and self._run(script.argv()).is_late:
                raise EnvironmentBroken(f"{self._problem.task_id}: its set-up took more than {OWN_S:g} seconds")

    @property
    def opening(self) -> Opening:
        """The system prompt and the problem."""
        return self._opening

    @property
    def tools(self) -> Sequence[Tool]:
        """The three tools of the benchmark."""
        return TOOLS

    def step(self, call: Call) -> Observation:
        """Run a script, or take the commitment; the scorer looks at the machine only when it is asked."""
        if self._committed is not None:
            return Observation(text=IS_OVER, error_kind=ErrorKind.NO_EFFECT, done=True)
        wrong = _wrong(call)
        if wrong is not None:
            return wrong
        value = call.arguments[ARGUMENT[call.tool]]
        if call.tool != "bash_action":
            self._committed = (value,)
            return Observation(text="", done=True)
        outcome = self._sandbox.script(value, self._timeout_s)
        return Observation(text=self._shown(outcome), error_kind=ErrorKind.TIMEOUT if outcome.is_late else None)

    def say(self, text: str) -> Observation:
        """Take a plain message, which nobody reads."""
        is_over = self._committed is not None
        return Observation(text=IS_OVER if is_over else NO_CALL, error_kind=ErrorKind.MALFORMED_CALL, done=is_over)

    def probe(self, call: Call) -> Observation:
        """Refuse: no tool is read-only."""
        return Observation(text=NOT_PROBED, error_kind=ErrorKind.REJECTED)

    def score(self) -> Score:
        """Judge the commitment. The check scripts come into the sandbox now, once, and never as files."""
        if self._committed is None:
            return nothing_committed()
        if self._score is None:
            self._score = score(self._problem, self._committed[0], self._run)
        return self._score

    def close(self) -> None:
        """End the sandbox."""
        self._sandbox.close()

    def _run(self, argv: list[str]) -> Outcome:
        return self._sandbox.program(argv, OWN_S)

    def _shown(self, outcome: Outcome) -> str:
        try:
            text = TERMINAL.sub(b"", outcome.output).decode("utf-8")
        except UnicodeDecodeError:
            text = NOT_TEXT
        if len(text) > LONGEST:
            text = text[:KEPT] + CUT
        if outcome.is_late:
            text += LATE.format(self._timeout_s)
        return OUTPUT + text if text else EMPTY


def _wrong(call: Call) -> Observation | None:
    """Return the refusal of a call that cannot be run."""
    if call.tool not in ARGUMENT:
        return Observation(text=BAD_CALL, error_kind=ErrorKind.UNKNOWN_TOOL)
    if set(call.arguments) != {ARGUMENT[call.tool]}:
        return Observation(text=BAD_CALL, error_kind=ErrorKind.INVALID_ARGS)
    if call.tool == "bash_action" and not isinstance(call.arguments["script"], str):
        return Observation(text=EMPTY, error_kind=ErrorKind.INVALID_ARGS)
    return None


def _seed(task_id: str) -> int:
    """Return what bash's RANDOM starts from in a task's set-up, so that a task is the same each time."""
    return int.from_bytes(sha256(task_id.encode()).digest()[:2], "big") >> 1
