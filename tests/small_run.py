"""A small workspace on the household, and an agent in it that a harness can help. For tests of whole runs.

The agent knows how each chore is done. On some tasks it writes its calls as text, so that nothing happens until
a harness rescues them; on others it only looks around, whatever it is told; the rest it solves.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from evolve.config import Config, load_config
from evolve.environments.household.gold import solve
from evolve.environments.household.heldout_problems import heldout_problems
from evolve.environments.household.loop_problems import loop_problems
from evolve.environments.household.session import HouseholdSession
from evolve.loop.session import Ran, run_session
from evolve.models.scripted import ScriptedModel, reply_call, reply_text
from evolve.progress import Event, Progress
from evolve.protocols import ModelRequest
from evolve.records import Completion, Split, StageResult
from evolve.repository import init_repository
from evolve.workspace import Workspace, starting_files, write_files

START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
ENVIRON = {"SOURCE_DATE_EPOCH": str(int(START.timestamp()))}
SETTINGS = ("environment=household", "environments.household={train=20,guard=12,heldout=12}", "model.kind=scripted")
REFUSED = "Nothing happens."


class Notes:
    """Progress that keeps what it is told."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def report(self, event: Event) -> None:
        self.events.append(event)


def make_workspace(root: Path, harness: Mapping[str, str | bytes] | None = None) -> Workspace:
    """Make a committed workspace for the household; `harness` adds files to the seed harness."""
    files = starting_files(["household"])
    for path, content in (harness or {}).items():
        files[f"harness_artifacts/household/{path}"] = content.encode() if isinstance(content, str) else content
    root.mkdir(parents=True, exist_ok=True)
    with init_repository(root) as repository:
        write_files(root, files)
        first = repository.head_commit()
        commit = repository.commit_files(None, "", files, message="a workspace", date=START)
        repository.update_ref(repository.branch(), commit, first)
        repository.git.run("reset", "-q")
    return Workspace(root)


def configured(*assignments: str) -> Config:
    """Return a configuration for a small run."""
    return load_config(None, assignments=(*SETTINGS, *assignments)).config


@cache
def _plans() -> dict[str, tuple[int, list[str]]]:
    """Return each problem's number and solution, by what the user says first."""
    listed = [*loop_problems(Split.TRAIN), *loop_problems(Split.GUARD), *heldout_problems()]
    return {HouseholdSession(p).opening.user: (number, solve(p)) for number, p in enumerate(listed)}


def agent(request: ModelRequest) -> Completion:
    """Do the next action of the chore, in the manner of the task."""
    system, user = (message["content"] for message in request.messages[:2])
    number, plan = _plans()[user]
    answers = [m["content"] for m in request.messages[2:] if m["role"] in ("tool", "user")]
    done = sum(not answer.startswith(REFUSED) for answer in answers)
    if number % 5 == 4:
        return reply_call("take_action", action="look")
    action = plan[min(done, len(plan) - 1)]
    if number % 5 in (1, 2) and "HINT" not in system:
        return reply_text(f'take_action(action="{action}")')
    return reply_call("take_action", action=action)


def solver(request: ModelRequest) -> Completion:
    """Do every chore as it is done."""
    _, plan = _plans()[request.messages[1]["content"]]
    turn = sum(message["role"] == "assistant" for message in request.messages)
    return reply_call("take_action", action=plan[min(turn, len(plan) - 1)])


def scripted(script: Callable[[ModelRequest], Completion] = agent, **options: Any) -> ScriptedModel:
    """Return a model that plays the agent."""
    return ScriptedModel(script, model_id="small", **options)


def run(
    workspace: Workspace,
    *assignments: str,
    resume: str | None = None,
    model: ScriptedModel | None = None,
    progress: Progress | None = None,
    environ: Mapping[str, str] = ENVIRON,
) -> Ran:
    """Run the loop in this process."""
    return asyncio.run(
        run_session(
            workspace,
            configured(*assignments),
            resume=resume,
            environ=environ,
            progress=progress or Notes(),
            model=model or scripted(),
        )
    )


def outcomes(stages: Iterable[StageResult]) -> dict[str, str]:
    """Return the outcome of each stage by its name, in order."""
    return {stage.stage: stage.outcome for stage in stages}
