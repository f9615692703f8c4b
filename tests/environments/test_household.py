"""The household: its words to the agent, its tasks, its seal, and what agents without a model score on it."""

import ast
import itertools
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

import evolve
from evolve.environments.household import HouseholdEnvironment, create
from evolve.environments.household.baselines import (
    PolicyMaker,
    at_random,
    episodes,
    repeater,
    searching,
    silent,
    talker,
)
from evolve.environments.household.goals import Goal, GoalKind
from evolve.environments.household.gold import solve
from evolve.environments.household.heldout_problems import heldout_problems
from evolve.environments.household.house import House, World
from evolve.environments.household.loop_problems import loop_problems
from evolve.environments.household.problems import Problem, make_world
from evolve.environments.household.session import (
    INVALID_ARGUMENTS,
    IS_OVER,
    NOT_A_CALL,
    NOT_READ_ONLY,
    NOTHING_HAPPENS,
    UNKNOWN_TOOL,
    HouseholdSession,
)
from evolve.environments.household.vocabulary import APPLIANCES, OBJECTS, PLACES, kind_of
from evolve.errors import ConfigError, SealError, UserError
from evolve.records import Call, ErrorKind, Look, Observation, Split, Task

WORLD = World(
    {
        "bench 1": ("apple 1", "fork 1"),
        "box 1": ("apple 2",),
        "desk 1": ("desklamp 1",),
        "fridge 1": (),
        "microwave 1": (),
        "sink 1": (),
    }
)


def session(kind: GoalKind = GoalKind.HEAT, obj: str = "apple", place: str = "box") -> HouseholdSession:
    goal = Goal(kind, obj, place)
    task = Task(task_id="t", environment="household", split=Split.TRAIN, family="f", text=goal.sentence)
    return HouseholdSession(Problem(task, goal, WORLD))


def act(action: str) -> Call:
    return Call(tool="take_action", arguments={"action": action})


def run(opened: HouseholdSession, *actions: str) -> list[Observation]:
    return [opened.step(act(action)) for action in actions]


def texts(opened: HouseholdSession, *actions: str) -> list[str]:
    return [seen.text for seen in run(opened, *actions)]


def look(environment: str = "household") -> Look:
    return Look(
        look_id="look-1",
        environment=environment,
        frozen_name="f",
        harness="h",
        model="m",
        opened_at="2026-01-01T00:00:00Z",
        number=1,
    )


def all_problems() -> dict[Split, tuple[Problem, ...]]:
    return {
        Split.TRAIN: loop_problems(Split.TRAIN),
        Split.GUARD: loop_problems(Split.GUARD),
        Split.HELDOUT: heldout_problems(),
    }


def listed(environment: HouseholdEnvironment) -> dict[Split, Sequence[Task]]:
    return {
        Split.TRAIN: environment.tasks(Split.TRAIN),
        Split.GUARD: environment.tasks(Split.GUARD),
        Split.HELDOUT: environment.heldout_tasks(look()),
    }


# What it says


def test_opening_names_receptacles_and_task():
    """The first message names the receptacles and the task and nothing else."""
    opening = session().opening
    assert opening.user == (
        "You are in a room with bench 1, box 1, desk 1, fridge 1, microwave 1, sink 1.\nTask: Put a hot apple in a box."
    )
    assert opening.admissible == (
        *(f"go to {place}" for place in WORLD.inside),
        "look",
        "inventory",
    )


def test_heat_then_place_word_for_word():
    """A whole episode reads exactly like this and ends at the goal."""
    opened = session()
    seen = run(
        opened,
        "look",
        "inventory",
        "go to bench 1",
        "take apple 1 from bench 1",
        "inventory",
        "go to microwave 1",
        "heat apple 1 with microwave 1",
        "go to box 1",
        "open box 1",
        "close box 1",
        "open box 1",
        "put apple 1 in box 1",
    )
    assert [one.text for one in seen] == [
        "You are in the middle of the room.",
        "You hold nothing.",
        "You are at bench 1. You see apple 1, fork 1.",
        "You take apple 1 from bench 1.",
        "You hold apple 1.",
        "You are at microwave 1. It is closed.",
        "You heat apple 1 with microwave 1.",
        "You are at box 1. It is closed.",
        "You open box 1. You see apple 2.",
        "You close box 1.",
        "You open box 1. You see apple 2.",
        "You put apple 1 in box 1. Task complete.",
    ]
    assert [one.done for one in seen] == [False] * 11 + [True]
    assert all(one.error_kind is None for one in seen)
    assert opened.score().value == 1.0


@pytest.mark.parametrize(
    ("before", "action"),
    [
        ([], "take apple 1 from bench 1"),
        ([], "open box 1"),
        (["go to bench 1"], "go to bench 1"),
        (["go to bench 1"], "open bench 1"),
        (["go to bench 1"], "Take apple 1 from bench 1"),
        (["go to bench 1"], "take apple from bench 1"),
        (["go to box 1"], "take apple 2 from box 1"),
        (["go to box 1", "open box 1"], "open box 1"),
        (["go to desk 1"], "take desklamp 1 from desk 1"),
        (["go to bench 1", "take apple 1 from bench 1"], "take fork 1 from bench 1"),
        (["go to bench 1", "take apple 1 from bench 1"], "put apple 1 on bench 1"),
        (["go to bench 1", "take apple 1 from bench 1", "go to box 1"], "put apple 1 in box 1"),
        (["go to bench 1", "take apple 1 from bench 1"], "heat apple 1 with microwave 1"),
        (["go to bench 1", "take fork 1 from bench 1", "go to microwave 1"], "heat fork 1 with microwave 1"),
        (["go to bench 1"], "use desklamp 1"),
        ([], ""),
    ],
)
def test_whatever_cannot_be_done_has_no_effect(before: list[str], action: str):
    """An action outside the rules is refused in two words and changes nothing."""
    opened = session()
    run(opened, *before)
    [here] = texts(opened, "look")
    [refused] = run(opened, action)
    assert (refused.text, refused.error_kind) == ("Nothing happens.", ErrorKind.NO_EFFECT)
    assert texts(opened, "look") == [here]


@pytest.mark.parametrize(
    ("call", "text", "kind"),
    [
        (Call(tool="go_to", arguments={"receptacle": "box 1"}), "Unknown tool.", ErrorKind.UNKNOWN_TOOL),
        (Call(tool="take_action", arguments={}), "Invalid arguments.", ErrorKind.INVALID_ARGS),
        (Call(tool="take_action", arguments={"action": 3}), "Invalid arguments.", ErrorKind.INVALID_ARGS),
        (
            Call(tool="take_action", arguments={"action": "look", "place": "box 1"}),
            "Invalid arguments.",
            ErrorKind.INVALID_ARGS,
        ),
    ],
)
def test_calls_that_do_not_fit_the_tool(call: Call, text: str, kind: ErrorKind):
    """A call of another tool or with other arguments is refused tersely, by kind."""
    seen = session().step(call)
    assert (seen.text, seen.error_kind, seen.done) == (text, kind, False)


def test_a_plain_message_is_no_call():
    """Saying something does nothing, even where it names the right action."""
    seen = session().say("go to box 1")
    assert (seen.text, seen.error_kind) == ("Nothing happens. Call take_action.", ErrorKind.MALFORMED_CALL)


def test_probes_are_refused():
    """The tool is not read-only, so a probe is rejected and moves nobody."""
    opened = session()
    seen = opened.probe(act("go to box 1"))
    assert (seen.text, seen.error_kind) == ("This tool cannot be probed.", ErrorKind.REJECTED)
    assert texts(opened, "look") == ["You are in the middle of the room."]


def test_nothing_can_be_done_after_the_end():
    """Once the goal was reached the score stands and every further step is rejected."""
    opened = session(GoalKind.PLACE, "fork", "sink")
    run(opened, "go to bench 1", "take fork 1 from bench 1", "go to sink 1", "put fork 1 in sink 1")
    [late] = run(opened, "take fork 1 from sink 1")
    assert (late.text, late.error_kind, late.done) == ("The task is over.", ErrorKind.REJECTED, True)
    assert opened.say("hello").error_kind is ErrorKind.REJECTED
    assert opened.score().success


def test_prompt_is_short():
    """System prompt, tool and first message stay under 1,000 characters, and observations under 150, in all tasks."""
    for problems in all_problems().values():
        for problem in problems:
            opened = HouseholdSession(problem)
            tool = opened.tools[0]
            assert len(opened.opening.system + opened.opening.user + tool.description + str(tool.parameters)) < 1000
            assert all(len(text) < 150 for text in texts(opened, *solve(problem)))


# Its goals


def test_heating_undoes_cooling():
    """An object is hot or cool, by what was done to it last."""
    opened = session()
    steps = ["go to bench 1", "take apple 1 from bench 1", "go to microwave 1", "heat apple 1 with microwave 1"]
    steps += ["go to fridge 1", "cool apple 1 with fridge 1", "go to box 1", "open box 1", "put apple 1 in box 1"]
    assert not run(opened, *steps)[-1].done
    assert opened.score().parts == {"reached": 0.0, "treated": 0.0}


def test_examining_needs_the_object_in_hand():
    """The lamp counts only while the object is held; without it the lamp just turns on."""
    opened = session(GoalKind.EXAMINE, "apple", "desklamp")
    assert texts(opened, "go to desk 1", "use desklamp 1")[-1] == "You turn on desklamp 1."
    steps = ["go to bench 1", "take apple 1 from bench 1", "go to desk 1", "use desklamp 1"]
    assert texts(opened, *steps)[-1] == "You turn on desklamp 1. Task complete."


def test_two_need_one_receptacle():
    """Two objects must both lie in the place; one alone is a sub-goal without value."""
    opened = session(GoalKind.TWO, "apple", "sink")
    run(opened, "go to bench 1", "take apple 1 from bench 1", "go to sink 1", "put apple 1 in sink 1")
    assert opened.score().value == 0.0
    assert opened.score().parts == {"reached": 0.0, "one_placed": 1.0}
    steps = ["go to box 1", "open box 1", "take apple 2 from box 1", "go to sink 1", "put apple 2 in sink 1"]
    assert run(opened, *steps)[-1].done


def test_score_is_pure():
    """Asking for the score twice gives the same and changes nothing."""
    opened = session()
    assert opened.score() == opened.score()
    assert opened.score().value == 0.0


@pytest.mark.parametrize(
    ("goal", "sentence"),
    [
        (Goal(GoalKind.PLACE, "egg", "shelf"), "Put an egg on a shelf."),
        (Goal(GoalKind.CLEAN, "egg", "box"), "Put a clean egg in a box."),
        (Goal(GoalKind.COOL, "pan", "bed"), "Put a cool pan on a bed."),
        (Goal(GoalKind.TWO, "knife", "drawer"), "Put two knives in a drawer."),
        (Goal(GoalKind.EXAMINE, "apple", "lantern"), "Examine an apple under a lantern."),
    ],
)
def test_sentences(goal: Goal, sentence: str):
    """Goals are told in plain English."""
    assert goal.sentence == sentence


# Its tasks


def test_gold_solves_every_task():
    """The gold solver reaches 1.0 on all tasks of all splits in at most 12 steps, and done comes with its last one."""
    environment = create({})
    tasks = listed(environment)
    for split, problems in all_problems().items():
        assert [problem.task for problem in problems] == list(tasks[split])
        for problem in problems:
            actions = solve(problem)
            opened = environment.open(problem.task, trial=0)
            seen = run(opened, *actions)
            assert len(actions) <= 12
            assert [one.done for one in seen] == [False] * (len(actions) - 1) + [True]
            assert opened.score().value == 1.0


def test_every_admissible_action_works():
    """Along the gold paths each published action does something, and the next gold action is among them."""
    for problem in loop_problems(Split.GUARD)[:12]:
        path = solve(problem)
        opened = HouseholdSession(problem)
        admissible = opened.opening.admissible or ()
        for done, action in enumerate(path):
            assert action in admissible
            for other in admissible:
                fork = HouseholdSession(problem)
                assert run(fork, *path[:done], other)[-1].error_kind is None
            admissible = opened.step(act(action)).admissible or ()


def test_counts_and_families():
    """There are 60, 36 and 60 tasks over twelve families, and any prefix is balanced over them."""
    tasks = listed(create({}))
    assert [len(tasks[split]) for split in Split] == [60, 36, 60]
    for split in Split:
        for length in range(1, len(tasks[split]) + 1):
            of_family = Counter(task.family for task in tasks[split][:length])
            of_kind = Counter(task.family.split("-")[0] for task in tasks[split][:length])
            assert max(of_family.values()) - min(of_family.values()) <= (1 if length >= 12 else 0)
            assert max(of_kind.values()) - min(of_kind.values()) <= (1 if length >= 6 else 0)
        assert len({task.family for task in tasks[split]}) == 12


def test_splits_share_words_but_no_content():
    """No goal, no pair of object and place and no world occurs in two splits; no goal occurs twice in one."""
    problems = all_problems()
    everything = [problem for split in Split for problem in problems[split]]
    assert len({problem.task.text for problem in everything}) == len(everything)
    assert len({str(problem.world) for problem in everything}) == len(everything)
    pairs = [{(p.goal.obj, p.goal.place) for p in problems[split]} for split in Split]
    assert all(not one & other for one, other in itertools.combinations(pairs, 2))
    train, _, heldout = ({obj for obj, _ in pair} | {place for _, place in pair} for pair in pairs)
    assert len(train & heldout) > 0.8 * len(heldout)


def test_worlds_are_small_and_not_solved_already():
    """Each world has 4 or 5 receptacles, at most three things in each, and its goal does not hold at the start."""
    for problems in all_problems().values():
        for problem in problems:
            assert 4 <= len(problem.world.inside) <= 5
            assert max(map(len, problem.world.inside.values())) <= 3
            assert not problem.goal.is_reached(House(problem.world))


def test_access_families_keep_their_word():
    """In `closed` families the objects start in containers to be opened, in `open` ones they lie in the open."""
    for problem in loop_problems(Split.TRAIN):
        house = House(problem.world)
        homes = [p for p, things in house.inside.items() if problem.goal.obj in map(kind_of, things)]
        assert [house.is_closed(home) for home in homes] == [problem.task.family.endswith("closed")] * len(homes)


def test_world_needs_no_luck():
    """Worlds can be made for any seed, goal kind and access, and gold solves them."""
    for seed in range(40):
        for kind in GoalKind:
            for access, place in (("open", "desk"), ("closed", "chest")):
                goal = Goal(kind, "mug", "lantern" if kind is GoalKind.EXAMINE else place)
                task = Task(task_id="t", environment="household", split=Split.TRAIN, family="f", text=goal.sentence)
                problem = Problem(task, goal, make_world(goal, access, Random(seed)))
                opened = HouseholdSession(problem)
                assert run(opened, *solve(problem))[-1].done


def test_task_ids_are_opaque():
    """A task id says split and number, nothing of the goal."""
    tasks = listed(create({}))
    for split in Split:
        assert [task.task_id for task in tasks[split]] == [
            f"household-{split}-{number:04d}" for number in range(len(tasks[split]))
        ]


def test_docs_page_tells_the_words_of_the_world():
    """The documentation page has every refusal, every word of the vocabulary, and the real task counts."""
    page = (Path(evolve.__file__).parents[1] / "docs/environments/household.md").read_text()
    refusals = (NOTHING_HAPPENS, UNKNOWN_TOOL, INVALID_ARGUMENTS, NOT_A_CALL, NOT_READ_ONLY, IS_OVER)
    assert [text for text in refusals if f"`{text}`" not in page] == []
    words = set(re.findall(r"\w+", page))
    assert set(OBJECTS + PLACES + APPLIANCES) - words == set()
    counts = [len(problems) for problems in all_problems().values()]
    assert "| all | | {} | {} | {} |".format(*counts) in page


# Determinism


def test_same_calls_same_observations():
    """Two sessions on one task, and two trials of it, answer the same calls alike."""
    environment = create({})
    for problem in loop_problems(Split.TRAIN):
        first, second = environment.open(problem.task, 0), environment.open(problem.task, 1)
        assert first.opening == second.opening
        assert run(first, *solve(problem)) == run(second, *solve(problem))


def test_sessions_do_not_share_state():
    """What is done in one session is not seen in another on the same task."""
    environment = create({})
    problem = loop_problems(Split.TRAIN)[0]
    first = environment.open(problem.task, 0)
    run(first, *solve(problem))
    second = environment.open(problem.task, 0)
    assert not second.score().success
    assert run(second, *solve(problem))[-1].done


def test_digests_are_the_same_in_another_process():
    """Card and held-out digest do not depend on the process or its hash seed."""
    environment = create({})
    program = (
        "from evolve.environments.household import create; e = create({}); print(e.card.digest, e.heldout_digest())"
    )
    for seed in ("1", "2"):
        answer = subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        assert answer.stdout.split() == [environment.card.digest, environment.heldout_digest()]


# Options


def test_limits_list_a_prefix():
    """Options shorten the lists from the end and leave the card's digest alone."""
    short, full = create({"train": 5, "guard": 2, "heldout": 3}), create({})
    for split in Split:
        assert list(listed(short)[split]) == list(listed(full)[split][: len(listed(short)[split])])
    assert [len(listed(short)[split]) for split in Split] == [5, 2, 3]
    assert short.card == full.card
    assert short.heldout_digest() != full.heldout_digest()


@pytest.mark.parametrize("options", [{"trian": 3}, {"train": 0}, {"train": 61}, {"guard": "4"}, {"heldout": True}])
def test_wrong_options_are_named(options: dict[str, object]):
    """An unknown option or an impossible number is a configuration error that names it."""
    with pytest.raises(ConfigError, match=next(iter(options))):
        create(options)


def test_card():
    """The card states the step limit, the pass mark and a SHA-256 digest."""
    card = create({}).card
    assert (card.name, card.step_limit, card.pass_mark, len(card.digest)) == ("household", 14, 1.0, 64)


# The seal


def test_tasks_refuses_heldout():
    """The loop's listing refuses the held-out split at run time too."""
    with pytest.raises(SealError):
        create({}).tasks(Split.HELDOUT)  # type: ignore[arg-type]


def test_a_look_at_another_environment_opens_nothing():
    """A look must be for this environment."""
    with pytest.raises(SealError, match="service_desk"):
        create({}).heldout_tasks(look("service_desk"))


def test_heldout_task_opens_only_as_itself():
    """A held-out id under another split, a changed text, a foreign or an unlisted task do not open."""
    environment = create({"train": 3})
    heldout = environment.heldout_tasks(look())[0]
    assert environment.open(heldout, 0).opening.user.endswith(heldout.text)
    others = [
        heldout.model_copy(update={"split": Split.TRAIN}),
        heldout.model_copy(update={"text": "Put a mug in a box."}),
        heldout.model_copy(update={"task_id": "desk-1"}),
        create({}).tasks(Split.TRAIN)[3],
    ]
    for task in others:
        with pytest.raises(UserError):
            environment.open(task, 0)


def test_canary_is_in_the_heldout_half_only():
    """The canary stands in each held-out problem, in no other problem, and in nothing that an agent sees."""
    canary = create({}).card.canary
    assert len(canary) > 30
    for split, problems in all_problems().items():
        for problem in problems:
            assert (canary in str(problem.as_json())) == (split is Split.HELDOUT)
            opened = HouseholdSession(problem)
            words = [opened.opening.system, opened.opening.user, *texts(opened, *solve(problem)), str(problem.task)]
            assert canary not in " ".join(words)


def test_only_the_environment_imports_heldout_problems():
    """No other module of the package imports the sealed problems."""
    root = Path(evolve.__file__).parent
    module = "evolve.environments.household.heldout_problems"
    importers = {
        path.relative_to(root).as_posix()
        for path in root.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if (isinstance(node, ast.ImportFrom) and node.module == module)
        or (isinstance(node, ast.Import) and any(name.name == module for name in node.names))
    }
    assert importers == {"environments/household/environment.py"}


# Agents without a model


@pytest.mark.parametrize(
    ("make", "count", "least", "most"),
    [
        (silent, 96, 0.0, 0.0),
        (talker, 96, 0.0, 0.0),
        (repeater, 96, 0.0, 0.0),
        (at_random, 960, 0.0, 0.02),
        (searching, 96, 1.0, 1.0),
    ],
)
def test_floor_and_ceiling(make: PolicyMaker, count: int, least: float, most: float):
    """Who does not play scores nothing, chance next to nothing, and who knows the rules can do all of it in time."""
    played = list(episodes(create({}), make, count=count, seed=0))
    success = sum(is_success for is_success, _ in played) / count
    assert least <= success <= most
