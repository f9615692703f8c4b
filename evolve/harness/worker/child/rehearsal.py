"""An episode that the zygote plays to nobody before it forks: workers inherit what that made warm.

A fork shares its parent's memory until one of them writes to it, and an interpreter writes even where it only runs
code for the first times. What was run here, a worker needs not copy.
"""

import json
from contextlib import suppress

from evolve.harness.worker.child import landlock, libc, loader, sandbox, seccomp, serve

Json = serve.Json
PR_GET_DUMPABLE = 3
TIMES = 3
CPU_S = 5.0
SOURCES = {
    "action.py": """
from evolve.rules import PASS, Block, Rewrite, action_rule

@action_rule(id="action.rehearsal", strength="block", evidence="played to nobody")
def rewrite(view, memory):
    memory["calls"] = memory.get("calls", 0) + 1
    if view.proposed and "line" not in view.proposed.arguments:
        return Rewrite(view.proposed.tool, {**view.proposed.arguments, "line": "1"})
    return Block("again") if len(view.history) > 2 else PASS
""",
    "trajectory.py": """
from evolve.rules import PASS, Note, trajectory_rule

@trajectory_rule(id="trajectory.rehearsal", strength="warn", evidence="played to nobody")
def note(view, memory):
    return Note("again") if view.steps_left < 2 else PASS
""",
}
OPENING: Json = {
    "task": "rehearse",
    "tools": [{"name": "write", "description": "", "parameters": {"required": ["line"]}, "read_only": False}],
    "step_limit": 3,
}


def play() -> None:
    """Load rules and ask them a few times. `serve.arm` comes first."""
    if sandbox.IS_LINUX:
        libc.prctl(PR_GET_DUMPABLE, why="prctl refused")
        for prepare in (landlock.attributes_here, seccomp.filter_here):
            with suppress(OSError):  # what this machine lacks, the self-test tells
                prepare()
    codes = loader.compiled(SOURCES)
    for _ in range(TIMES):
        rules = serve.within(CPU_S, loader.load, codes, {})
        episode = serve.Episode(_received(OPENING), rules, CPU_S)
        for steps_left in (3, 2, 1):
            episode.answer(_message(["action.rehearsal"], steps_left))
            episode.answer(_message(["trajectory.rehearsal"], steps_left))
    loader.forget(SOURCES)


def _message(units: list[str], steps_left: int) -> Json:
    call = {"tool": "write", "arguments": {"words": ["a", "b"]}, "raw": ""}
    now = {"text": "a", "proposed": call, "admissible": ["write"]}
    step = {**now, "executed": call, "observation": "written", "error": None}
    return _received({"id": 1, "units": units, "steps": [step], **now, "steps_left": steps_left, "probes": []})


def _received(message: Json) -> Json:
    """Return a message as it comes out of a line."""
    received: Json = json.loads(json.dumps(message))
    return received
