"""Ways of reading an episode that several signals share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from evolve.classify.masking import schema_of
from evolve.records import Call, Episode, Step, Tool


def call_of(step: Step) -> Call | None:
    """Return the call that was run, else the one that the model wrote, else None."""
    if step.executed is not None or step.proposed is None or step.proposed.arguments is None:
        return step.executed
    return Call(tool=step.proposed.tool, arguments=step.proposed.arguments)


def calls(episode: Episode) -> Iterator[tuple[Step, Call]]:
    """Yield the steps that hold a readable call and were not blocked."""
    for step in episode.steps:
        call = call_of(step)
        if call is not None and not step.is_blocked:
            yield step, call


def silent_steps(episode: Episode) -> Iterator[Step]:
    """Yield the steps in which nothing was called."""
    return (s for s in episode.steps if s.proposed is None and s.executed is None and not s.is_blocked)


def admissible_before(episode: Episode, index: int) -> tuple[str, ...] | None:
    """Return the actions that the environment published last before a step, or None."""
    for step in reversed(episode.steps[:index]):
        if step.observation.admissible is not None:
            return step.observation.admissible
    return episode.opening.admissible


def action_argument(tool: str, tools: Sequence[Tool]) -> str | None:
    """Return the one open string parameter of a tool, the one that published actions can be values of, or None."""
    properties = schema_of(tool, tools).get("properties", {})
    open_strings = [n for n, schema in properties.items() if schema.get("type") == "string" and "enum" not in schema]
    return open_strings[0] if len(open_strings) == 1 else None


def acting_tool(tools: Sequence[Tool]) -> str | None:
    """Return the one tool that takes published actions, or None."""
    fitting = [tool.name for tool in tools if action_argument(tool.name, tools) is not None]
    return fitting[0] if len(fitting) == 1 else None
