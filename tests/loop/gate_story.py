"""Stories of the gate: a small workspace, a sampled agent that is moody, and candidates written by hand.

Whether an episode goes well is drawn anew for each system prompt, task and trial, with a chance that words in the
system prompt change. Words in the notes of a harness are thus all that a candidate needs to be good or bad.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import small_run

from evolve.environments.household.loop_problems import loop_problems
from evolve.environments.installed import make_environment
from evolve.errors import ProviderError
from evolve.models.scripted import ScriptedModel, reply_call
from evolve.protocols import ModelRequest
from evolve.records import Completion, LoopSplit, Split, Task, Verdict
from evolve.store.ledger import Ledger
from evolve.workspace import Workspace

RUN = "household-001"
BY_HAND = ("proposer.kind=handoff", "iterations=1", "gate.max_trials=4", "rollout.retries=0", "model.temperature=0.7")
LOOK = reply_call("take_action", action="look")
GUARD_FROM = len(loop_problems(Split.TRAIN))


def chance(number: int, system: str) -> float:
    """Return how often the agent solves a problem: of five, two well, two badly, one hardly ever."""
    rate = {0: 0.9, 1: 0.25, 2: 0.25, 3: 0.9, 4: 0.05}[number % 5]
    if "BRIGHT" in system and number % 5 in (1, 2):
        return 0.97
    if "NARROW" in system and number % 5 in (1, 2):
        return 0.97 if number < GUARD_FROM else rate
    if "HEAVY" in system:
        return rate / 4
    return rate


def moody(request: ModelRequest) -> Completion:
    """Do the chore where the day is good, else look around."""
    system, user = (message["content"] for message in request.messages[:2])
    number, plan = small_run._plans()[user]
    if "BRICK" in system and number == 0:
        return LOOK
    if draw(f"{request.stream}\n{system}") >= chance(number, system):
        return LOOK
    turn = sum(message["role"] == "assistant" for message in request.messages)
    return reply_call("take_action", action=plan[min(turn, len(plan) - 1)])


def draw(text: str) -> float:
    """Return a number in [0, 1) that depends on the text alone."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:7], "big") / 2**56


def broken_where(word: str, share: float) -> Callable[[ModelRequest], Completion]:
    """Return an agent whose endpoint fails for a share of the episodes in which a word stands in the prompt."""

    def script(request: ModelRequest) -> Completion:
        system = request.messages[0]["content"]
        if word in system and draw(f"fails {request.stream}") < share:
            raise ProviderError("the endpoint is away")
        return moody(request)

    return script


def sampled(script: Callable[[ModelRequest], Completion] = moody) -> ScriptedModel:
    """Return a sampled model that plays an agent."""
    return ScriptedModel(script, model_id="moody", temperature=0.7)


def note(word: str, unit: str = "contract.mood") -> str:
    """Return a contract file with one note."""
    return f'[[system]]\nid = "{unit}"\ntext = "{word}"\nevidence = "two tasks"\n'


def begin(root: Path, *assignments: str, harness: dict[str, str] | None = None, **options: Any) -> Workspace:
    """Make a workspace and run until the first candidate is waited for."""
    workspace = small_run.make_workspace(root, harness)
    small_run.run(workspace, *BY_HAND, *assignments, **options)
    return workspace


def propose(workspace: Workspace, files: dict[str, str], number: int = 1, **proposal: Any) -> None:
    """Edit the harness that is waited for, as a person would; the hypothesis names the pattern with most support."""
    name = f"{RUN}-{number:02d}"
    folder = workspace.candidate_folder(name) / "workspace"
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    with opened(workspace) as ledger:
        pattern = ledger.patterns(RUN, number)[0].pattern
    told = {"hypothesis": "A note puts the agent in the mood.", "layer": "contract", "pattern_id": pattern.pattern_id}
    (folder / "proposal.json").write_text(json.dumps({**told, **proposal}))


def judge(workspace: Workspace, *assignments: str, number: int = 1, **options: Any) -> Verdict:
    """Resume the run and return the verdict on the candidate."""
    small_run.run(workspace, *BY_HAND, *assignments, resume="", **options)
    return verdict_of(workspace, number)


def verdict_of(workspace: Workspace, number: int = 1) -> Verdict:
    """Return the verdict that is on record."""
    with opened(workspace) as ledger:
        verdict = ledger.verdict(f"{RUN}-{number:02d}")
    assert verdict is not None
    return verdict


def opened(workspace: Workspace) -> Ledger:
    """Open the ledger for reading."""
    return Ledger(workspace.ledger_url, is_read_only=True)


def reasons(verdict: Verdict) -> str:
    """Return why the last stage decided as it did."""
    return " ".join(verdict.stages[-1].reasons)


def tasks(split: LoopSplit) -> list[Task]:
    """Return the tasks of a small run."""
    config = small_run.configured()
    return list(make_environment("household", config.environments["household"]).tasks(split))


def copy_of(workspace: Workspace, folder: Path) -> Workspace:
    """Return a workspace that stands where this one does."""
    return Workspace(shutil.copytree(workspace.root, folder / "ws", symlinks=True))
