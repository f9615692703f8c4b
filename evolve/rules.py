"""The rule API, version 1: all that `action.py` and `trajectory.py` of a harness may import.

A rule is a plain function marked by a decorator that gives its unit id, its strength and the evidence
it rests on. It receives what an agent in production could see and returns one outcome:

    from evolve.rules import PASS, Block, Note, Probe, Rewrite, action_rule, trajectory_rule

    @action_rule(id="action.strip-the", strength="rewrite", evidence="12 of 40 tasks: 'go to the desk 1'")
    def strip_the(view, memory):
        action = view.proposed.arguments.get("action", "") if view.proposed else ""
        if "the " in action and action.replace("the ", "") in (view.admissible or ()):
            return Rewrite("take_action", {"action": action.replace("the ", "")})
        return PASS

    @trajectory_rule(id="trajectory.low-budget", strength="warn", evidence="9 tasks ran out of steps")
    def low_budget(view, memory):
        return Note("Two steps are left: finish now.") if view.steps_left == 2 else PASS

Action rules run after the model's turn and before the environment; they may pass, block, rewrite or
probe. Trajectory rules run after the environment answered; they may pass, note or probe. `memory` is a
dict of the rule's own that lives for one episode; module globals are not kept. Rules are called in the
order in which they stand in the file; the first action rule that blocks ends the turn, each rewrite is
what the next rule sees, and the notes of all trajectory rules are joined.

A rule that raises, takes too long or returns something else is switched off for the episode. A rule must
not choose between readings when the right one is ambiguous, and must not name tasks or answers.
This module imports the standard library only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

API_VERSION = 1
STRENGTHS = ("note", "warn", "block", "rewrite", "force")

ALLOWED = (
    "__future__",
    "bisect",
    "collections",
    "collections.abc",
    "copy",
    "dataclasses",
    "difflib",
    "enum",
    "evolve.rules",
    "functools",
    "heapq",
    "itertools",
    "json",
    "math",
    "operator",
    "re",
    "statistics",
    "string",
    "textwrap",
    "typing",
    "unicodedata",
)
"""The modules that rules may import."""

StrengthName = Literal["note", "warn", "block", "rewrite", "force"]


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool as the environment offers it: `parameters` is a JSON schema; `read_only` tools may be probed."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    read_only: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call. `arguments` is None where the model's text was not a JSON object; `raw` is that text."""

    tool: str
    arguments: Mapping[str, Any] | None
    raw: str = ""


@dataclass(frozen=True, slots=True)
class PastStep:
    """One step of the episode so far.

    `text` is what the model wrote beside its call; `proposed` the call it made and `executed` the call the
    environment ran (None: none); `observation` the environment's own words; `error` its error kind
    (malformed_call, unknown_tool, invalid_args, rejected, no_effect, timeout) or None; `admissible` the
    actions it published then, or None.
    """

    text: str
    proposed: Call | None
    executed: Call | None
    observation: str
    error: str | None = None
    admissible: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class View:
    """What a rule sees.

    `text` and `proposed` are the model's present turn (for trajectory rules: the turn just executed, also
    the last of `history`); `admissible` the actions the environment publishes now, or None; `steps_left`
    counts the steps after this one; `probes` are the answers to this rule's own probes in this turn.
    """

    task: str
    tools: tuple[Tool, ...]
    history: tuple[PastStep, ...]
    text: str
    proposed: Call | None
    admissible: tuple[str, ...] | None
    steps_left: int
    step_limit: int
    probes: tuple[str, ...] = field(default=())

    def tool(self, name: str) -> Tool | None:
        """Return the tool of that name, or None."""
        return next((tool for tool in self.tools if tool.name == name), None)


@dataclass(frozen=True, slots=True)
class Pass:
    """Change nothing."""


PASS = Pass()


@dataclass(frozen=True, slots=True)
class Note:
    """Add `text` to the next observation (trajectory rules)."""

    text: str


@dataclass(frozen=True, slots=True)
class Block:
    """Do not run the call; show `message` to the model instead. A block costs a step."""

    message: str


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Run this call in place of what the model wrote (action rules)."""

    tool: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Probe:
    """Ask for a call of a read-only tool; the rule is called again with its answer in `view.probes`."""

    tool: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Force:
    """Act in the model's place at the next step (trajectory rules; needs a strength cap of `force`)."""

    tool: str
    arguments: Mapping[str, Any]


Outcome = Pass | Note | Block | Rewrite | Probe | Force
RuleFunction = Callable[[View, dict[str, Any]], Outcome]
F = TypeVar("F", bound=RuleFunction)


@dataclass(frozen=True, slots=True)
class Declaration:
    """What a decorator recorded about a rule."""

    id: str
    layer: Literal["action", "trajectory"]
    strength: StrengthName
    evidence: str


def _declare(
    layer: Literal["action", "trajectory"], id: str, strength: StrengthName, evidence: str
) -> Callable[[F], F]:
    if strength not in STRENGTHS:
        raise ValueError(f"rule {id!r}: strength {strength!r} is none of {', '.join(STRENGTHS)}")

    def mark(function: F) -> F:
        function.__rule__ = Declaration(id, layer, strength, evidence)  # type: ignore[attr-defined]
        return function

    return mark


def action_rule(*, id: str, strength: StrengthName, evidence: str) -> Callable[[F], F]:
    """Mark a rule on a proposed call. `strength` is the strongest outcome that it may return."""
    return _declare("action", id, strength, evidence)


def trajectory_rule(*, id: str, strength: StrengthName, evidence: str) -> Callable[[F], F]:
    """Mark a rule on the history. `strength` is the strongest outcome that it may return."""
    return _declare("trajectory", id, strength, evidence)
