"""Small episodes, tools and rule views made by hand, for tests of what reads them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from evolve import rules
from evolve.records import (
    Call,
    Episode,
    ErrorKind,
    Observation,
    Opening,
    ProposedCall,
    Score,
    Split,
    Step,
    StopReason,
    Tool,
)

ENVIRONMENT = "toy"


def tool(name: str, *, read_only: bool = False, optional: tuple[str, ...] = (), **properties: Any) -> Tool:
    """Return a tool; a property is given as its schema, or as a tuple of enumerated values."""
    schemas = {k: {"type": "string", "enum": list(v)} if isinstance(v, tuple) else v for k, v in properties.items()}
    required = [name for name in schemas if name not in optional]
    parameters = {"type": "object", "properties": schemas, "required": required}
    return Tool(name=name, description=f"{name}.", parameters=parameters, read_only=read_only)


TEXT = {"type": "string"}
DESK = (
    tool("get_order", read_only=True, order_id=TEXT),
    tool("cancel_order", order_id=TEXT, reason=("changed_mind", "found_cheaper")),
    tool("close_ticket", resolution=("done", "refused"), statement=TEXT),
)
SHOP = (
    tool("find_order", read_only=True, optional=("note",), order_id={**TEXT, "pattern": "^O-[0-9]{4}$"}, note=TEXT),
)
HOUSE = (tool("take_action", action=TEXT),)


def step(
    name: str | None = None,
    arguments: dict[str, Any] | str | None = None,
    *,
    text: str = "",
    answer: str = "Done.",
    error: str | None = None,
    done: bool = False,
    admissible: tuple[str, ...] | None = None,
    executed: Call | None = None,
    is_blocked: bool = False,
) -> Step:
    """Return a step with index 0; `arguments` as text are not JSON; without `name` nothing is called."""
    raw = arguments if isinstance(arguments, str) else json.dumps(arguments or {})
    parsed = None if isinstance(arguments, str) else (arguments or {})
    proposed = None if name is None else ProposedCall(call_id="c", tool=name, arguments_text=raw, arguments=parsed)
    if executed is None and name is not None and parsed is not None and not is_blocked:
        executed = Call(tool=name, arguments=parsed)
    kind = None if error is None else ErrorKind(error)
    return Step(
        index=0,
        turn=0,
        text=text,
        proposed=proposed,
        executed=executed,
        observation=Observation(text=answer, error_kind=kind, done=done, admissible=admissible),
        is_blocked=is_blocked,
    )


def act(action: str, answer: str = "Done.", **more: Any) -> Step:
    """Return a step of the house's one tool."""
    return step("take_action", {"action": action}, answer=answer, **more)


def episode(
    *steps: Step,
    task: str = "t1",
    family: str = "f",
    success: bool = False,
    stop: StopReason = "finished",
    user: str = "Put a clean mug in a drawer.",
    admissible: tuple[str, ...] | None = None,
) -> Episode:
    """Return an episode of these steps, numbered."""
    numbered = tuple(s.model_copy(update={"index": i, "turn": i}) for i, s in enumerate(steps))
    return Episode(
        episode_id=f"e-{task}-{'good' if success else 'bad'}",
        task_id=task,
        environment=ENVIRONMENT,
        family=family,
        split=Split.TRAIN,
        trial=0,
        model="m",
        harness="off",
        status="done",
        stop=stop,
        opening=Opening(system="", user=user, admissible=admissible),
        steps=numbered,
        score=Score(value=float(success), success=success, version="1"),
    )


def view(
    tools: Sequence[Tool],
    history: Sequence[Step] = (),
    *,
    now: Step | None = None,
    task: str = "Put a clean mug in a drawer.",
    admissible: tuple[str, ...] | None = None,
    steps_left: int = 10,
) -> rules.View:
    """Return what a rule sees: `now` is the turn that an action rule judges, not yet run."""
    shown = now or (history[-1] if history else step())
    return rules.View(
        task=task,
        tools=tuple(rules.Tool(t.name, t.description, t.parameters, t.read_only) for t in tools),
        history=tuple(_past(s) for s in history),
        text=shown.text,
        proposed=_proposed(shown),
        admissible=admissible,
        steps_left=steps_left,
        step_limit=20,
    )


def run_rule(source: str, unit: str, seen: rules.View, memory: dict[str, Any] | None = None) -> rules.Outcome:
    """Run one rule of a rule file in this process."""
    names: dict[str, Any] = {}
    exec(compile(source, "rules", "exec"), names)
    found = {f.__rule__.id: f for f in names.values() if hasattr(f, "__rule__")}
    outcome: rules.Outcome = found[unit](seen, {} if memory is None else memory)
    return outcome


def _proposed(shown: Step) -> rules.Call | None:
    if shown.proposed is None:
        return None
    return rules.Call(shown.proposed.tool, shown.proposed.arguments, shown.proposed.arguments_text)


def _past(past: Step) -> rules.PastStep:
    ran = past.executed
    return rules.PastStep(
        text=past.text,
        proposed=_proposed(past),
        executed=None if ran is None else rules.Call(ran.tool, ran.arguments),
        observation=past.observation.text,
        error=past.observation.error_kind.value if past.observation.error_kind else None,
        admissible=past.observation.admissible,
    )
