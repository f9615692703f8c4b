"""One episode, turn by turn: what the model is shown, what is run, and what stands in the record."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from evolve.agent import NOTE_MARK, play
from evolve.harness.artifact import read_harness
from evolve.harness.runtime import HarnessRuntime
from evolve.harness.worker import WorkerPool
from evolve.models.cache import CompletionCache
from evolve.models.cached import CachedModel
from evolve.models.calls import read_call
from evolve.models.scripted import ScriptedModel, by_turn, reply_call, reply_text
from evolve.protocols import EnvironmentCard
from evolve.records import (
    Call,
    Completion,
    Effect,
    Episode,
    ErrorKind,
    Json,
    Observation,
    Opening,
    Score,
    Split,
    Strength,
    Task,
    Tool,
)
from evolve.workspace import seed_harness

HEAD = "from evolve.rules import *\n"
TOML = 'schema_version = 1\nenvironment = "box"\n[limits]\nskills_min_score = 0.1\n'
TASK = Task(task_id="t", environment="box", split=Split.TRAIN, family="f", text="Open the red box.")
TEXT = {"type": "object", "properties": {"what": {"type": "string"}}, "required": ["what"]}
NOTE = '[[system]]\nid = "contract.s"\ntext = "Be quick."\nevidence = "e"\n'
TOOL_NOTE = '[[tool]]\nid = "contract.t"\ntool = "open"\ntext = "Red first."\nevidence = "e"\n'
SKILL = '+++\nid = "skill.red"\ntitle = "Red boxes"\nwhen = "red box"\nevidence = "e"\n+++\nPush.\n'


class Box:
    """An environment of one task: `open red` ends it; `peek` is read-only."""

    card = EnvironmentCard(name="box", version="1", step_limit=5, pass_mark=1.0, description="A box.", digest="box")
    opening = Opening(system="Do it.", user="Open the red box.", admissible=("red", "blue"))
    tools: Sequence[Tool] = (
        Tool(name="open", description="Open a box.", parameters=TEXT),
        Tool(name="peek", description="Look into a box.", parameters=TEXT, read_only=True),
    )

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.probes: list[Call] = []

    def open(self, task: Task, trial: int) -> Box:
        return self

    def step(self, call: Call) -> Observation:
        self.calls.append(call)
        is_open = call.arguments.get("what") == "red"
        return Observation(text="It is open." if is_open else "Closed.", done=is_open, admissible=("red", "blue"))

    def say(self, text: str) -> Observation:
        return Observation(text="Call a tool.", error_kind=ErrorKind.MALFORMED_CALL)

    def probe(self, call: Call) -> Observation:
        self.probes.append(call)
        return Observation(text="A ball.")

    def score(self) -> Score:
        is_open = any(call.arguments.get("what") == "red" for call in self.calls)
        return Score(value=float(is_open), success=is_open, version="1")

    def close(self) -> None:
        return


class Played:
    """An episode, the requests that the model saw, and the box."""

    def __init__(self, episode: Episode, requests: list[Any], box: Box) -> None:
        self.episode = episode
        self.requests = [(request.messages, request.tools) for request in requests]
        self.box = box

    @property
    def effects(self) -> list[tuple[str, Effect]]:
        return [(firing.unit, firing.effect) for firing in self.episode.firings]


@pytest.fixture
def played(tmp_path: Path) -> Any:
    """Play replies against a harness given as files; None plays without one."""

    def go(replies: Iterable[Completion], files: dict[str, str] | None = None, **switches: Any) -> Played:
        return asyncio.run(_play(tmp_path, list(replies), files, switches))

    return go


async def _play(root: Path, replies: list[Completion], files: dict[str, str] | None, switches: Json) -> Played:
    model, box = ScriptedModel(by_turn(replies)), Box()
    harness = read_harness({k: v.encode() for k, v in ({"harness.toml": TOML} | files).items()}) if files else None
    (root / "completions.jsonl").unlink(missing_ok=True)
    with CompletionCache(root / "completions.jsonl") as cache:
        async with WorkerPool(call_timeout_s=0.2) as pool:
            runtime = HarnessRuntime(harness, pool, **switches)
            episode = await play(box, TASK, 0, model=CachedModel(model, cache), runtime=runtime)  # type: ignore[arg-type]
    return Played(episode, model.requests, box)


def action(body: str, *, name: str = "x", strength: str = "force") -> dict[str, str]:
    """Return an action.py with one rule."""
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    head = f'@action_rule(id="action.{name}", strength="{strength}", evidence="e")\ndef {name}(view, memory):\n'
    return {"action.py": f"{HEAD}\n{head}{lines}\n"}


def trajectory(body: str, *, strength: str = "force") -> dict[str, str]:
    """Return a trajectory.py with one rule."""
    head = f'@trajectory_rule(id="trajectory.x", strength="{strength}", evidence="e")\ndef x(view, memory):\n'
    return {"trajectory.py": f"{HEAD}\n{head}    {body}\n"}


BLUE, RED = reply_call("open", what="blue"), reply_call("open", what="red")
EVERYTHING = {
    "contract.toml": NOTE + TOOL_NOTE,
    "skills/red.md": SKILL,
    **action('return Rewrite("open", {"what": "red"})'),
    **trajectory('return Note("Go on.")'),
}


def test_an_episode_ends_when_the_session_says_so(played: Any) -> None:
    """The steps, the score and the usage are on record, and each step names the request that it answers."""
    episode = played([BLUE, RED]).episode
    assert (episode.stop, episode.is_success, len(episode.steps), episode.requests) == ("finished", True, 2, 2)
    assert [step.observation.text for step in episode.steps] == ["Closed.", "It is open."]
    assert len({step.request for step in episode.steps}) == 2
    assert episode.usage.prompt_tokens > 0


def test_an_episode_ends_at_the_step_limit(played: Any) -> None:
    """What never ends is cut off and scored as it stands."""
    episode = played([BLUE]).episode
    assert (episode.stop, len(episode.steps), episode.is_success) == ("step_limit", 5, False)


def test_a_full_context_ends_an_episode(played: Any) -> None:
    """The endpoint's word that the prompt is too long is the end, not an error."""
    episode = played([BLUE, Completion(text="", finish_reason="context_full")]).episode
    assert (episode.stop, episode.status, len(episode.steps)) == ("context_full", "done", 1)


def test_what_is_no_call_is_an_observation(played: Any) -> None:
    """Plain text, broken arguments and unparsable calls are answered, each with the kind of error that it is."""
    broken = Completion(text="", calls=(read_call("c", "open", "{what"),))
    garbled = Completion(text="", finish_reason="malformed", malformed="no JSON")
    steps = played([reply_text("Hello."), broken, garbled, RED]).episode.steps
    assert [step.observation.text for step in steps[:3]] == [
        "Call a tool.",
        "The arguments of open are not a JSON object.",
        "Your tool call could not be parsed: no JSON",
    ]
    assert {step.observation.error_kind for step in steps[:3]} == {ErrorKind.MALFORMED_CALL}


def test_several_calls_in_a_reply_are_several_steps(played: Any) -> None:
    """They share a turn, stand in one message of history, and each has its answer."""
    both = BLUE.model_copy(update={"calls": (*BLUE.calls, *reply_call("peek", what="blue").calls)})
    result = played([both, RED])
    assert [step.turn for step in result.episode.steps] == [0, 0, 1]
    history = result.requests[1][0]
    assert [message["role"] for message in history] == ["system", "user", "assistant", "tool", "tool"]
    assert [call["id"] for call in history[2]["tool_calls"]] == [m["tool_call_id"] for m in history[3:]]


@pytest.mark.parametrize(
    ("files", "switches"),
    [
        (EVERYTHING, {"off": frozenset({"contract", "skill", "action", "trajectory"})}),
        (EVERYTHING, {"off": frozenset({"contract.s", "contract.t", "skill.red", "action.x", "trajectory.x"})}),
        (
            EVERYTHING
            | {
                "harness.toml": TOML
                + "[layers]\n"
                + "".join(f"{n} = false\n" for n in ("contract", "skill", "action", "trajectory"))
            },
            {},
        ),
        (
            EVERYTHING
            | {
                "harness.toml": TOML
                + "[units]\n"
                + "".join(
                    f'"{n}" = false\n' for n in ("contract.s", "contract.t", "skill.red", "action.x", "trajectory.x")
                )
            },
            {},
        ),
        ({path: text.decode() for path, text in seed_harness("household").items()}, {}),
    ],
    ids=["layers off in the run", "units off in the run", "layers off in the harness", "units off", "seed harness"],
)
def test_off_is_identical(played: Any, files: dict[str, str], switches: Json) -> None:
    """With everything switched off, however that is done, each request is the one of a run without a harness."""
    replies = [BLUE, reply_text("Well."), RED]
    bare, off = played(replies), played(replies, files, **switches)
    assert off.requests == bare.requests
    assert off.effects == []
    assert off.episode.steps == bare.episode.steps


@pytest.mark.parametrize(
    ("off", "left"),
    [
        ("contract", {"skill.red", "action.x", "trajectory.x"}),
        ("skill", {"contract.s", "contract.t", "action.x", "trajectory.x"}),
        ("action", {"contract.s", "contract.t", "skill.red", "trajectory.x"}),
        ("trajectory", {"contract.s", "contract.t", "skill.red", "action.x"}),
        ("contract.s", {"contract.t", "skill.red", "action.x", "trajectory.x"}),
        ("action.x", {"contract.s", "contract.t", "skill.red", "trajectory.x"}),
    ],
)
def test_each_layer_and_each_unit_is_switched_off_alone(played: Any, off: str, left: set[str]) -> None:
    """Switching one off leaves all others as they are."""
    files = EVERYTHING | action('return Rewrite("peek", {"what": "blue"}) if not view.history else PASS')
    result = played([BLUE, RED], files, off=frozenset({off}))
    assert result.episode.faults == ()
    assert {unit for unit, _ in result.effects} == left


def test_the_layers_change_what_they_may_and_log_it(played: Any) -> None:
    """Notes go into prompt and tool, a skill into the prompt, a rewrite into the call and a note into the answer."""
    files = EVERYTHING | action('return Rewrite("open", {"what": "green"}) if not view.history else PASS')
    result = played([BLUE, RED], files)
    first, second = result.requests
    assert first[0][0]["content"] == "Do it.\n\nBe quick.\n\nRed boxes\nPush."
    assert first[1][0]["function"]["description"] == "Open a box. Red first."
    assert first[1][1]["function"]["description"] == "Look into a box."
    assert result.box.calls[0] == Call(tool="open", arguments={"what": "green"})
    assert second[0][2]["tool_calls"][0]["function"]["arguments"] == '{"what":"green"}'
    assert second[0][3]["content"] == f"Closed.\n\n{NOTE_MARK} Go on."
    assert result.episode.steps[0].observation.text == "Closed."
    assert result.effects == [
        ("contract.s", "note"),
        ("contract.t", "note"),
        ("skill.red", "note"),
        ("action.x", "rewrite"),
        ("trajectory.x", "note"),
    ]


def test_a_call_written_as_text_can_be_rescued(played: Any) -> None:
    """The rescued call stands in history as a call, so that the model sees what was run."""
    rescue = action('return Rewrite("open", {"what": "blue"}) if view.proposed is None else PASS')
    result = played([reply_text("open(blue)"), RED], rescue)
    assert result.requests[1][0][2]["tool_calls"][0]["function"] == {"name": "open", "arguments": '{"what":"blue"}'}
    assert result.requests[1][0][2]["content"] == ""


def test_a_block_costs_a_step_and_gives_way_at_its_cap(played: Any) -> None:
    """A rule that blocks for ever is let through after three blocks, so that it cannot deadlock an episode."""
    result = played([RED], action('return Block("Wait.")'))
    assert [effect for _, effect in result.effects] == ["block", "block", "block", "let_through"]
    assert [step.is_blocked for step in result.episode.steps] == [True, True, True, False]
    assert result.requests[1][0][-1]["content"] == "Wait."
    assert result.episode.is_success


def test_probes_reach_read_only_tools_and_nothing_else(played: Any) -> None:
    """A probe's answer comes back to the rule and into the log; a tool that acts is not run for one."""
    body = 'if not view.probes:\n    return Probe("{tool}", {{"what": "red"}})\nreturn Block(view.probes[0])'
    peeked = played([RED], action(body.format(tool="peek")))
    assert peeked.episode.steps[0].observation.text == "A ball."
    assert peeked.effects[:2] == [("action.x", "probe"), ("action.x", "block")]
    assert len(peeked.episode.steps) == 4
    opened = played([RED], action(body.format(tool="open")))
    assert opened.box.probes == []
    assert "is not a read-only tool" in opened.episode.steps[0].observation.text
    assert len(opened.box.calls) == 1


@pytest.mark.parametrize(
    ("cap", "body"),
    [(Strength.WARN, 'return Block("No.")'), (Strength.BLOCK, 'return Rewrite("open", {"what": "green"})')],
)
def test_an_outcome_above_the_cap_is_a_fault_and_changes_nothing(played: Any, cap: Strength, body: str) -> None:
    """The run's cap holds whatever a rule declares."""
    result = played([BLUE, RED], action(body), cap=cap)
    assert [fault.kind for fault in result.episode.faults] == ["over_strength"]
    assert result.box.calls == [Call(tool="open", arguments={"what": what}) for what in ("blue", "red")]


def test_force_acts_in_the_models_place_only_where_it_is_asked_for(played: Any) -> None:
    """Under the cap `force` a trajectory rule takes the next step without a request; under the default it may not."""
    files = trajectory('return Force("open", {"what": "red"})')
    forced = played([BLUE], files, cap=Strength.FORCE)
    assert [step.is_forced for step in forced.episode.steps] == [False, True]
    assert (forced.episode.requests, forced.episode.is_success) == (1, True)
    assert [fault.kind for fault in played([BLUE, RED], files).episode.faults] == ["over_strength"]


@pytest.mark.parametrize(
    ("body", "kind"),
    [("return 1 / 0", "raised"), ("return 'yes'", "nonsense"), ("while True:\n    pass", "timeout")],
)
def test_a_rule_that_misbehaves_is_switched_off_and_the_episode_goes_on(played: Any, body: str, kind: str) -> None:
    """One fault is counted, the rest of the episode is as if the rule had passed, and other rules still run."""
    files = action(body) | trajectory('return Note("Here.")')
    result = played([BLUE, BLUE, RED], files)
    assert [(fault.unit, fault.step, fault.kind) for fault in result.episode.faults] == [("action.x", 0, kind)]
    assert result.episode.is_success
    assert [effect for unit, effect in result.effects if unit == "trajectory.x"] == ["note", "note"]


def test_a_harness_that_does_not_load_is_one_fault(played: Any) -> None:
    """The episode is played without its rules."""
    result = played([BLUE, RED], {"action.py": f"{HEAD}1 / 0\n"})
    assert [(fault.unit, fault.step) for fault in result.episode.faults] == [("harness", -1)]
    assert result.episode.is_success


def test_memory_lasts_for_the_episode(played: Any) -> None:
    """What a rule keeps in one step it finds in the next."""
    body = 'memory["n"] = memory.get("n", 0) + 1\nreturn Block(str(memory["n"])) if memory["n"] < 3 else PASS'
    steps = played([RED], action(body)).episode.steps
    assert [step.observation.text for step in steps] == ["1", "2", "It is open."]
