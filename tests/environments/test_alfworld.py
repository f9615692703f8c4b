"""ALFWorld played for real: upstream's engine in child processes, against recorded episodes of the same games."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path

import orjson
import pytest

from evolve.environments.alfworld import Alfworld, create
from evolve.environments.alfworld.session import NOTHING_HAPPENS, AlfworldSession
from evolve.errors import ConfigError, EnvironmentBroken
from evolve.records import Call, ErrorKind, Json, LoopSplit, Observation, Split, Task

pytestmark = [
    pytest.mark.benchmark_data,
    pytest.mark.skipif(find_spec("alfworld") is None, reason="the extra alfworld (minutes to build) is not installed"),
]
AT_ONCE = 4
SMALL = "valid_seen/pick_and_place_simple-ToiletPaper-None-ToiletPaperHanger-406/trial_T20190908_122858_883968"
NOTHING_IN_SIGHT = "You are in the middle of a room. Looking quickly around you, you see nothing."
LOOP: tuple[LoopSplit, ...] = (Split.TRAIN, Split.GUARD)


@pytest.fixture(scope="module")
def folder(benchmark_data: Callable[[str], Path]) -> Path:
    return benchmark_data("alfworld")


@pytest.fixture(scope="module")
def alfworld(folder: Path) -> Alfworld:
    """All 140 `valid_seen` games on the loop's side."""
    return create({"data": folder, "games": "valid_seen", "train": 140, "guard": 140})


@pytest.fixture(scope="module")
def tasks(alfworld: Alfworld) -> dict[str, Task]:
    return {task.task_id: task for split in LOOP for task in alfworld.tasks(split)}


@pytest.fixture(scope="module")
def shared(alfworld: Alfworld, tasks: dict[str, Task]) -> Iterator[AlfworldSession]:
    """A session for all mistakes: none of them may change it."""
    with closing(alfworld.open(tasks[SMALL], 0)) as opened:
        yield opened


def act(session: AlfworldSession, action: str) -> Observation:
    return session.step(Call(tool="take_action", arguments={"action": action}))


def retrace(session: AlfworldSession, trace: list[Json]) -> list[Json]:
    """Play a recorded episode again and write it down in the form of the recording."""
    first, *rest = trace
    opening = session.opening
    written: list[Json] = [{**first, "observation": opening.user, "admissible": list(opening.admissible or ())}]
    for step in rest:
        seen = act(session, step["action"])
        score = session.score()
        written.append(
            {
                "action": step["action"],
                "observation": seen.text,
                "admissible": list(seen.admissible or ()),
                "score": int(score.value),
                "done": seen.done,
                "won": score.success,
            }
        )
    return written


def test_recorded_episodes_come_out_text_for_text(alfworld: Alfworld, tasks: dict[str, Task], folder: Path) -> None:
    """A recorded episode of each family, mistakes among its steps, a few at once: texts, actions, score, end agree."""
    recorded = [orjson.loads(line) for line in (folder / "golden_traces.jsonl").read_bytes().splitlines()]
    traces = [trace for trace in recorded if trace["mode"] == "mixed"]

    def check(trace: Json) -> str:
        task = tasks[trace["game"].removesuffix("/game.tw-pddl")]
        with closing(alfworld.open(task, 0)) as session:
            assert session.score().value == 0
            assert retrace(session, trace["steps"]) == trace["steps"]
            assert session.score().success
        return task.family

    with ThreadPoolExecutor(AT_ONCE) as threads:
        families = set(threads.map(check, traces))
    assert len(families) == 6


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        (Call(tool="take_action", arguments={"action": "fly to shelf 1"}), ErrorKind.NO_EFFECT),
        (Call(tool="take_action", arguments={"action": "LOOK"}), ErrorKind.NO_EFFECT),
        (Call(tool="take_action", arguments={"action": ""}), ErrorKind.NO_EFFECT),
        (Call(tool="take_action", arguments={"action": "\x00\ud800\n" + "é" * 5000}), ErrorKind.NO_EFFECT),
        (Call(tool="take_action", arguments={"action": "put mug 1 in/on shelf 1"}), ErrorKind.NO_EFFECT),
        (Call(tool="take_action", arguments={"action": "examine nothing 1"}), ErrorKind.NO_EFFECT),
        (Call(tool="take_action", arguments={"action": 1}), ErrorKind.INVALID_ARGS),
        (Call(tool="take_action", arguments={}), ErrorKind.INVALID_ARGS),
        (Call(tool="take_action", arguments={"action": "look", "again": True}), ErrorKind.INVALID_ARGS),
        (Call(tool="go_to", arguments={"action": "look"}), ErrorKind.UNKNOWN_TOOL),
    ],
)
def test_what_cannot_be_done_is_answered_in_the_engines_one_sentence(
    shared: AlfworldSession, call: Call, kind: ErrorKind
) -> None:
    """Whatever an agent does wrong reads `Nothing happens.`; the kind says apart what it was, and nothing changes."""
    seen = shared.step(call)
    assert seen == Observation(text="Nothing happens.", error_kind=kind, admissible=shared.opening.admissible)


def test_plain_text_and_probes_change_nothing(shared: AlfworldSession) -> None:
    """A message without a call, even one that reads like an action, and a probe are refused."""
    said = shared.say("go to cabinet 1")
    assert (said.text, said.error_kind) == (NOTHING_HAPPENS, ErrorKind.MALFORMED_CALL)
    probed = shared.probe(Call(tool="take_action", arguments={"action": "look"}))
    assert probed.error_kind is ErrorKind.REJECTED
    assert act(shared, "look").text == NOTHING_IN_SIGHT
    assert shared.score().value == 0


def test_sessions_take_turns_without_touching_each_other(alfworld: Alfworld, tasks: dict[str, Task]) -> None:
    """Opened twice a task begins the same, and what happens in one session is not seen in the other."""
    with closing(alfworld.open(tasks[SMALL], 0)) as one, closing(alfworld.open(tasks[SMALL], 1)) as other:
        assert one.opening == other.opening
        moved = act(one, "go to cabinet 1")
        assert moved.error_kind is None
        assert act(other, "inventory").text == "You are not carrying anything."
        assert other.step(Call(tool="take_action", arguments={"action": "examine cabinet 1"})).text == NOTHING_HAPPENS
        assert act(other, "go to cabinet 1") == moved


def test_a_finished_game_stays_finished(alfworld: Alfworld, tasks: dict[str, Task], folder: Path) -> None:
    """After the goal further calls do nothing and say that it is over; the score stands, closed or not."""
    session = alfworld.open(tasks[SMALL], 0)
    traces = (orjson.loads(line) for line in (folder / "golden_traces.jsonl").read_bytes().splitlines())
    steps = next(trace["steps"] for trace in traces if trace["game"].startswith(SMALL) and trace["mode"] == "gold")
    assert [act(session, step["action"]).done for step in steps[1:]] == [False] * (len(steps) - 2) + [True]
    assert act(session, "look").done
    assert session.say("I am done").done
    session.close()
    session.close()
    assert session.score().success


def engines() -> set[int]:
    """The processes that this one started."""
    listed = Path("/proc/self/task").glob("*/children")
    return {int(process_id) for path in listed for process_id in path.read_text().split()}


def test_a_dead_engine_is_a_broken_environment_and_not_a_score(folder: Path, tasks: dict[str, Task]) -> None:
    """An engine that is killed in the middle, and a session that is closed, raise instead of answering the agent."""
    before = engines()
    alone = create({"data": folder, "games": "valid_seen", "train": 140, "guard": 140})
    session = alone.open(tasks[SMALL], 0)
    (engine,) = engines() - before
    os.kill(engine, signal.SIGKILL)
    with pytest.raises(EnvironmentBroken, match="the engine process died"):
        act(session, "look")
    session.close()
    assert engines() <= before
    with pytest.raises(EnvironmentBroken, match="closed"):
        act(session, "look")


def test_the_card_names_what_decides_a_result(alfworld: Alfworld, folder: Path) -> None:
    """The digest covers games and step limit and not how many tasks are listed; steps run in threads."""
    card = alfworld.card
    few = create({"data": folder, "games": "valid_seen", "train": 1, "guard": 0})
    short = create({"data": folder, "games": "valid_seen", "step_limit": 20})
    assert (card.step_limit, short.card.step_limit) == (50, 20)
    assert card.is_blocking
    assert few.card.digest == card.digest
    assert len({card.digest, short.card.digest, create({"data": folder, "games": "valid_train"}).card.digest}) == 3


def test_absent_games_are_said_when_the_environment_is_made(tmp_path: Path) -> None:
    """The message says which file or folder is missed, where, and what says how to bring it."""
    with pytest.raises(ConfigError, match=r"json_2\.1\.1/train or games_train\.jsonl\.xz in .*bench fetch alfworld"):
        create({"data": tmp_path})
