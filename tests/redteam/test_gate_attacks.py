"""Attacks on the measurement: rule code that looks for a task's id, a patch that hopes for a lucky draw."""

from __future__ import annotations

import asyncio
from pathlib import Path

from loop import gate_story
from redteam.cases import case

from evolve.environments.installed import make_environment
from evolve.gate.budget import Policy
from evolve.harness.artifact import read_harness
from evolve.harness.runtime import HarnessRuntime
from evolve.harness.worker import WorkerPool
from evolve.protocols import Session
from evolve.records import Call, Decision, Layer, Observation, ProposedCall, Split, Step, Strength

ECHO = '''
from evolve.rules import Block, action_rule


def everything(value, depth):
    """Return whatever can be reached from a value without a call."""
    names = [name for name in dir(value) if not name.startswith("__")] if depth else []
    return repr(value) + "".join(everything(getattr(value, name), depth - 1) for name in names)


@action_rule(id="action.echo", strength="block", evidence="e")
def echo(view, memory):
    told = everything(view, 2)
    return Block(" ".join(word for word in told.split() if WORD in word)[:2000] or "nothing")
'''


async def echoed(session: Session, word: str, text: str) -> str:
    """Return what of everything that a rule receives holds a word."""
    files = {
        "harness.toml": b'schema_version = 1\nenvironment = "household"\n',
        "action.py": ECHO.replace("WORD", repr(word)).encode(),
    }
    step = Step(index=0, turn=0, observation=Observation(text="ok"), executed=Call(tool="look", arguments={}))
    proposed = ProposedCall(
        call_id="1", tool="take_action", arguments_text='{"action":"look"}', arguments={"a": "look"}
    )
    async with WorkerPool() as pool:
        runtime = HarnessRuntime(read_harness(files), pool, cap=Strength.REWRITE, off=frozenset())
        harness = await runtime.begin(session.opening, session.tools, task_text=text, step_limit=20)
        realized = await harness.realize("x", proposed, steps=[step], prober=session, admissible=("look",))
        assert harness.rule_units == [("action.echo", Layer.ACTION)]
        return realized.message or ""


@case("23.ids")
def test_a_rule_never_learns_which_task_it_plays() -> None:
    """In all that a rule can reach there is neither the task's id nor its split; words of its text are found."""
    environment = make_environment("household", {})
    task = environment.tasks(Split.TRAIN)[0]
    session = environment.open(task, 1)
    try:
        for word in (task.task_id, "guard", "heldout"):
            assert asyncio.run(echoed(session, word, task.text)) == "nothing"
        assert task.text.split()[-1] in asyncio.run(echoed(session, task.text.split()[-1], task.text))  # the control
    finally:
        session.close()
    assert task.task_id in task.model_dump_json()


@case("26.comments")
def test_a_patch_of_comments_draws_no_lot(tmp_path: Path) -> None:
    """A sampled model is asked nothing for it, so its scores are the incumbent's and it is not accepted."""
    calm = gate_story.note("Be calm.")
    settings = ("gate.max_trials=2", f"gate.policy={Policy.EXPLORE.value}")
    workspace = gate_story.begin(
        tmp_path / "ws", *settings, harness={"contract.toml": calm}, model=gate_story.sampled()
    )
    gate_story.propose(workspace, {"contract.toml": f"# a better harness\n{calm}"})
    verdict = gate_story.judge(workspace, *settings, model=gate_story.sampled())
    assert verdict.requests_asked == 0
    assert verdict.decision is not Decision.ACCEPT
