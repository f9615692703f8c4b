"""Signals: what went mechanically wrong in an episode, each found by one small pure function.

A signal says what happened, not that it made the episode fail: successful episodes have signals too. Steps
that a harness blocked are skipped, so that a mended fault is not counted again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from evolve.classify.completion import completed, fits, published_pattern
from evolve.classify.masking import masked_for, schema_of
from evolve.classify.near import near_match
from evolve.classify.readings import is_complete, read_calls, spoken_actions
from evolve.classify.steps import acting_tool, action_argument, admissible_before, calls, silent_steps
from evolve.records import Call, Episode, ErrorKind, FailureClass, Json, Step, Tool, digest_of

REPEATS = 3
FEWEST_STALE_STEPS = 5
LONGEST_KEY = 160
REFUSALS = (ErrorKind.REJECTED, ErrorKind.INVALID_ARGS)
INEFFECTIVE = (ErrorKind.INVALID_ARGS, ErrorKind.NO_EFFECT, ErrorKind.REJECTED)

Finder = Callable[[Episode, Sequence[Tool]], Iterator["Signal"]]


@dataclass(frozen=True, slots=True)
class Signal:
    """One mechanical fault: its kind, the key that makes it comparable between tasks, the step that shows it.

    `detail` may hold `tool` (the one meant), `argument`, `value` (what the model wrote), `near` (the one choice it
    can mean), `text` (the environment's words) and `masked` (the same without what varies by task).
    """

    kind: str
    key: str
    step: int
    detail: Json = field(default_factory=dict)

    @property
    def signature(self) -> str:
        """Kind and key: what episodes are grouped by."""
        return f"{self.kind}:{self.key}" if self.key else self.kind

    @property
    def failure_class(self) -> FailureClass:
        """The class that this kind of signal speaks for."""
        return next(of for of, finders in FINDERS.items() if self.kind in (f.__name__ for f in finders))


def find_signals(episode: Episode, tools: Sequence[Tool]) -> tuple[Signal, ...]:
    """Return all signals of an episode by class, finder and step."""
    return tuple(signal for finders in FINDERS.values() for find in finders for signal in find(episode, tools))


# Action: the act that the model meant was not expressed in a form that can be run.


def call_as_text(episode: Episode, tools: Sequence[Tool]) -> Iterator[Signal]:
    """Find replies without a call whose text spells one out; the key is the shape."""
    schemas = {tool.name: tool.parameters for tool in tools}
    for step in silent_steps(episode):
        readings = read_calls(step.text, schemas)
        if readings:
            shape, tool, arguments = readings[0]
            detail = {"tool": tool, "value": arguments, "readings": len(readings)}
            yield Signal("call_as_text", shape, step.index, detail)
        elif spoken := spoken_actions(step.text, admissible_before(episode, step.index) or ()):
            detail = {"tool": acting_tool(tools), "value": spoken[0], "readings": len(spoken)}
            yield Signal("call_as_text", "admissible", step.index, detail)


def malformed(episode: Episode, tools: Sequence[Tool]) -> Iterator[Signal]:
    """Find replies in which the endpoint could not parse a call, or which are empty."""
    for step in silent_steps(episode):
        if step.observation.error_kind is ErrorKind.MALFORMED_CALL and not step.text.strip():
            yield Signal("malformed", "", step.index, {"text": step.observation.text[:LONGEST_KEY]})


def bad_json(episode: Episode, tools: Sequence[Tool]) -> Iterator[Signal]:
    """Find calls whose arguments are no JSON object; the key is the tool."""
    for step in episode.steps:
        if step.proposed is not None and step.proposed.arguments is None and step.executed is None:
            detail = {"tool": step.proposed.tool, "value": step.proposed.arguments_text[:LONGEST_KEY]}
            yield Signal("bad_json", step.proposed.tool, step.index, detail)


def unknown_tool(episode: Episode, tools: Sequence[Tool]) -> Iterator[Signal]:
    """Find calls of tools that do not exist; the key is the near real one, or `none`."""
    names = [tool.name for tool in tools]
    for step, call in calls(episode):
        if call.tool not in names:
            near = near_match(call.tool, names)
            yield Signal("unknown_tool", near or "none", step.index, {"tool": near, "value": call.tool, "near": near})


def wrong_argument_name(episode: Episode, tools: Sequence[Tool]) -> Iterator[Signal]:
    """Find arguments that the schema does not know; the key is tool and near parameter, or `none`."""
    for step, call in calls(episode):
        known = schema_of(call.tool, tools).get("properties")
        for name in sorted(set(call.arguments) - set(known or call.arguments)):
            near = near_argument(call, name, schema_of(call.tool, tools))
            detail = {"tool": call.tool, "argument": near, "value": name, "near": near}
            yield Signal("wrong_argument_name", f"{call.tool}.{near or 'none'}", step.index, detail)


def near_argument(call: Call, name: str, schema: Json) -> str | None:
    """Return the parameter that a wrong name means: a near name, or the only one missing for the only one unknown."""
    unused = [known for known in schema.get("properties", {}) if known not in call.arguments]
    near = near_match(name, unused)
    missing = [required for required in schema.get("required", ()) if required in unused]
    unknown = set(call.arguments) - set(schema.get("properties", {}))
    return missing[0] if near is None and len(missing) == 1 and unknown == {name} else near


def missing_argument(episode: Episode, tools: Sequence[Tool]) -> Iterator[Signal]:
    """Find required arguments that are absent under any name; the key is tool and parameter."""
    for step, call in calls(episode):
        schema = schema_of(call.tool, tools)
        unknown = set(call.arguments) - set(schema.get("properties", {}))
        meant = {near_argument(call, name, schema) for name in unknown}
        for name in sorted(set(schema.get("required", ())) - set(call.arguments) - meant):
            detail = {"tool": call.tool, "argument": name}
            yield Signal("missing_argument", f"{call.tool}.{name}", step.index, detail)


def outside_enum(episode: Episode, tools: Sequence[Tool]) -> Iterator[Signal]:
    """Find values outside an enum; the key is tool, parameter, and whether one choice is near."""
    for step, call in calls(episode):
        properties = schema_of(call.tool, tools).get("properties", {})
        for name, value in sorted(call.arguments.items()):
            choices = [str(choice) for choice in properties.get(name, {}).get("enum", ())]
            if choices and str(value) not in choices:
                near = near_match(str(value), choices)
                detail = {"tool": call.tool, "argument": name, "value": value, "near": near, "choices": choices}
                key = f"{call.tool}.{name}:{'near' if near else 'none'}"
                yield Signal("outside_enum", key, step.index, detail)


def outside_pattern(episode: Episode, tools: Sequence[Tool]) -> Iterator[Signal]:
    """Find values outside their published pattern; the key is parameter, and whether one completion exists."""
    for step, call in calls(episode):
        properties = schema_of(call.tool, tools).get("properties", {})
        for name, value in sorted(call.arguments.items()):
            pattern = published_pattern(properties.get(name, {}))
            if pattern is not None and not fits(value, pattern):
                near = completed(value, pattern)
                detail = {"tool": call.tool, "argument": name, "value": value, "near": near}
                yield Signal("outside_pattern", f"{name}:{'near' if near else 'none'}", step.index, detail)


def not_admissible(episode: Episode, tools: Sequence[Tool]) -> Iterator[Signal]:
    """Find calls without effect whose value is no published action; the key says whether one action is near."""
    for step, call in calls(episode):
        choices = admissible_before(episode, step.index)
        argument = action_argument(call.tool, tools)
        value = call.arguments.get(argument) if argument is not None else None
        is_outside = choices and isinstance(value, str) and value not in choices
        if is_outside and step.observation.error_kind in INEFFECTIVE:
            near = near_match(str(value), list(choices or ()))
            detail = {"tool": call.tool, "argument": argument, "value": value, "near": near}
            yield Signal("not_admissible", f"{call.tool}:{'near' if near else 'none'}", step.index, detail)


# Contract: every call could be run, but a rule of the environment was broken.


def rejected(episode: Episode, tools: Sequence[Tool]) -> Iterator[Signal]:
    """Find calls that fit their schema and were refused; the key is the refusal with what varies masked."""
    for step, call in _unexplained(episode, tools):
        if step.observation.error_kind in REFUSALS:
            yield _answered("rejected", step, call, tools)


def no_effect(episode: Episode, tools: Sequence[Tool]) -> Iterator[Signal]:
    """Find admissible calls that changed nothing; the key is the masked answer."""
    for step, call in _unexplained(episode, tools):
        if step.observation.error_kind is ErrorKind.NO_EFFECT:
            yield _answered("no_effect", step, call, tools)


def _unexplained(episode: Episode, tools: Sequence[Tool]) -> Iterator[tuple[Step, Call]]:
    """Yield the calls that fit schema and published actions, so that only a rule can have stopped them."""
    explained = {
        signal.step for find in (not_admissible, outside_enum, outside_pattern) for signal in find(episode, tools)
    }
    for step, call in calls(episode):
        schema = schema_of(call.tool, tools)
        if schema and step.index not in explained and is_complete(call.arguments, schema):
            yield step, call


def _answered(kind: str, step: Step, call: Call, tools: Sequence[Tool]) -> Signal:
    text = masked_for(step.observation.text, call, tools)
    detail = {"tool": call.tool, "text": step.observation.text, "masked": text}
    return Signal(kind, text[:LONGEST_KEY], step.index, detail)


def closed_early(episode: Episode, tools: Sequence[Tool]) -> Iterator[Signal]:
    """Find episodes that ended themselves before a call that changes something had worked; the key is the last tool."""
    writing = {tool.name for tool in tools if not tool.read_only}
    ran = [(s, c.tool) for s, c in calls(episode) if s.observation.error_kind is None]
    has_acted = any(tool in writing for _, tool in ran[:-1])
    if episode.stop == "finished" and ran and ran[-1][0] is episode.steps[-1] and not has_acted:
        yield Signal("closed_early", ran[-1][1], ran[-1][0].index, {"tool": ran[-1][1]})


# Trajectory: the episode went round, stood still or ran out.


def repeated_call(episode: Episode, tools: Sequence[Tool]) -> Iterator[Signal]:
    """Find calls made at least three times with the same answer each time; the key is the tool."""
    seen: Counter[str] = Counter()
    for step, call in calls(episode):
        name = digest_of([call.tool, call.arguments, step.observation.text])
        seen[name] += 1
        if seen[name] == REPEATS:
            detail = {"tool": call.tool, "value": call.arguments}
            yield Signal("repeated_call", call.tool, step.index, detail)


def oscillation(episode: Episode, tools: Sequence[Tool]) -> Iterator[Signal]:
    """Find the first A-B-A-B of two different calls; the key is the tools."""
    made = list(calls(episode))
    for index in range(3, len(made)):
        first, second, third, fourth = (call for _, call in made[index - 3 : index + 1])
        if first == third and second == fourth and first != second:
            names = "+".join(sorted({first.tool, second.tool}))
            detail = {"tool": first.tool, "value": [first.arguments, second.arguments]}
            yield Signal("oscillation", names, made[index][0].index, detail)
            return


def stagnation(episode: Episode, tools: Sequence[Tool]) -> Iterator[Signal]:
    """Find the first stretch, a third of the episode and at least five steps, in which no answer was new."""
    needed = max(FEWEST_STALE_STEPS, len(episode.steps) // 3)
    seen: set[str] = set()
    stale = 0
    for step in episode.steps:
        stale = stale + 1 if step.observation.text in seen else 0
        seen.add(step.observation.text)
        if stale == needed:
            yield Signal("stagnation", "", step.index, {"steps": needed})
            return


def text_only(episode: Episode, tools: Sequence[Tool]) -> Iterator[Signal]:
    """Find the first two replies in a row that neither make nor spell out a call."""
    spelt = {signal.step for signal in call_as_text(episode, tools)}
    silent = {step.index: step for step in silent_steps(episode) if step.index not in spelt and step.text.strip()}
    first = next((index for index in silent if index + 1 in silent), None)
    if first is not None:
        yield Signal("text_only", "", first + 1, {"value": silent[first].text[:LONGEST_KEY]})


def budget_gone(episode: Episode, tools: Sequence[Tool]) -> Iterator[Signal]:
    """Find episodes that used up their steps or their context; the key says which."""
    if episode.stop in ("step_limit", "context_full") and episode.steps:
        yield Signal("budget_gone", episode.stop, episode.steps[-1].index, {})


FINDERS: Mapping[FailureClass, tuple[Finder, ...]] = MappingProxyType(
    {
        FailureClass.ACTION: (
            call_as_text,
            malformed,
            bad_json,
            unknown_tool,
            wrong_argument_name,
            missing_argument,
            outside_enum,
            outside_pattern,
            not_admissible,
        ),
        FailureClass.CONTRACT: (rejected, no_effect, closed_early),
        FailureClass.TRAJECTORY: (repeated_call, oscillation, stagnation, text_only, budget_gone),
    }
)
