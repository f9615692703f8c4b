"""The form in which a worker is shown an episode: what an agent in production could see, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence

from evolve.records import Call, Json, ProposedCall, Step, Tool


def opening_json(task: str, tools: Sequence[Tool], step_limit: int) -> Json:
    """Return what a worker is told once: the task text, the tools as offered, the step limit."""
    return {"task": task, "tools": [tool.model_dump() for tool in tools], "step_limit": step_limit}


def delta_json(
    *,
    steps: Sequence[Step],
    text: str,
    proposed: ProposedCall | Call | None,
    admissible: Sequence[str] | None,
    steps_left: int,
    probes: Sequence[str] = (),
) -> Json:
    """Return what a worker is told with each call: the steps that are new to it, and the present turn."""
    return {
        "steps": [step_json(step) for step in steps],
        "text": text,
        "proposed": call_json(proposed),
        "admissible": None if admissible is None else list(admissible),
        "steps_left": steps_left,
        "probes": list(probes),
    }


def step_json(step: Step) -> Json:
    """Return one past step. Notes and firings of the harness are left out: rules see the environment's words."""
    seen = step.observation
    return {
        "text": step.text,
        "proposed": call_json(step.proposed),
        "executed": call_json(step.executed),
        "observation": seen.text,
        "error": seen.error_kind,
        "admissible": None if seen.admissible is None else list(seen.admissible),
    }


def call_json(call: ProposedCall | Call | None) -> Json | None:
    """Return a call as rules see it: arguments None where the model's text was no JSON object."""
    if call is None:
        return None
    raw = call.arguments_text if isinstance(call, ProposedCall) else ""
    return {"tool": call.tool, "arguments": call.arguments, "raw": raw}
