"""What every environment has to keep: the embedded ones keep it, broken ones are caught, a new one starts right."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evolve.environments.conformance import CHECKS, conformance, do_nothing, subject_of
from evolve.environments.household import create as household
from evolve.environments.service_desk import create as service_desk
from evolve.environments.template import start_environment, template_files
from evolve.errors import UserError
from evolve.records import Call, ErrorKind, Look, Observation, Score, Split, Task

MADE: dict[str, Any] = {"household": household, "service_desk": service_desk}


@pytest.mark.parametrize("name", MADE)
def test_the_embedded_environments_keep_the_contract(name: str) -> None:
    """Each check holds, and doing nothing solves nothing."""
    subject = subject_of(name, lambda: MADE[name]({}))
    assert [(check.name, check.detail) for check in conformance(subject) if not check.holds] == []
    assert do_nothing(subject).successes == 0


def module_of(name: str) -> dict[str, Any]:
    """Return what the file of a new environment defines."""
    defined: dict[str, Any] = {"__file__": __file__, "__name__": name}
    exec(compile(template_files(name)[f"{name}.py"], name, "exec"), defined)
    return defined


def broken_coat_check(fault: str) -> tuple[str, Callable[[], Any]]:
    """Return a new environment with one fault, and the check that it must not pass."""
    defined = module_of("coat_check")
    environment, session = defined["CoatCheck"], defined["CoatCheckSession"]
    check, patch = FAULTS[fault]
    patch(environment, session)
    return check, lambda: environment()


def listing_heldout(environment: Any, _: Any) -> None:
    environment.tasks = lambda self, split: self._tasks[split]


def answering_any_look(environment: Any, _: Any) -> None:
    environment.heldout_tasks = lambda self, look: self._tasks[Split.HELDOUT]


def sharing_tasks(environment: Any, _: Any) -> None:
    plain = environment.tasks
    environment.tasks = lambda self, split: [
        task.model_copy(update={"split": split}) for task in plain(self, Split.TRAIN)
    ]


def drawing_lots(_: Any, session: Any) -> None:
    drawn = iter(range(10_000))
    session.say = lambda self, text: Observation(text="hm")
    session.step = lambda self, call: Observation(text=str(next(drawn)))


def sharing_state(_: Any, session: Any) -> None:
    shared: list[str] = []
    plain_init = session.__init__

    def start(self: Any, task: Task) -> None:
        plain_init(self, task)
        shared.clear()

    def step(self: Any, call: Call) -> Observation:
        shared.append(call.tool)
        return Observation(text=str(len(shared)))

    session.__init__, session.step = start, step


def raising_at_mistakes(_: Any, session: Any) -> None:
    plain = session.step
    session.step = lambda self, call: plain(self, Call(tool=call.tool, arguments={"tag": call.arguments["tag"]}))


def forgetting_the_kind(_: Any, session: Any) -> None:
    plain = session.step
    session.step = lambda self, call: plain(self, call).model_copy(update={"error_kind": None})


def raising_at_text(_: Any, session: Any) -> None:
    session.say = lambda self, text: {}["no"]


def acting_on_probes(_: Any, session: Any) -> None:
    def probe(self: Any, call: Call) -> Observation:
        self._given = self._wanted
        return Observation(text="done", error_kind=ErrorKind.REJECTED)

    session.probe = probe


def scoring_at_random(_: Any, session: Any) -> None:
    drawn = iter(range(10_000))
    session.score = lambda self: Score(value=0.0, success=False, version=str(next(drawn)))


def scoring_against_the_mark(_: Any, session: Any) -> None:
    session.score = lambda self: Score(value=0.5, success=True, version="1")


def opening_strangers(environment: Any, _: Any) -> None:
    session = module_of("coat_check")["CoatCheckSession"]
    environment.open = lambda self, task, trial: session(task)


def showing_the_canary(environment: Any, _: Any) -> None:
    plain = environment.__init__

    def start(self: Any) -> None:
        plain(self)
        self.card = replace(self.card, canary="cloakroom")

    environment.__init__ = start


def closing_once(_: Any, session: Any) -> None:
    session.close = lambda self: self.__delattr__("opening")


def naming_no_tools(_: Any, session: Any) -> None:
    session.tools = tuple(tool.model_copy(update={"parameters": {}}) for tool in session.tools)


def changing_the_card(environment: Any, _: Any) -> None:
    drawn = iter(range(10_000))
    plain = environment.__init__

    def start(self: Any) -> None:
        plain(self)
        self.card = replace(self.card, version=str(next(drawn)))

    environment.__init__ = start


FAULTS = {
    "another card each time": ("its card is complete and repeats", changing_the_card),
    "held-out tasks listed": ("the held-out split is sealed", listing_heldout),
    "any look will do": ("the held-out split is sealed", answering_any_look),
    "train and guard share tasks": ("train and guard are listed, disjoint and in a fixed order", sharing_tasks),
    "tools without schemas": ("tools are function schemas", naming_no_tools),
    "answers drawn by lot": ("the same calls give the same answers and score", drawing_lots),
    "state shared by sessions": ("sessions do not touch each other", sharing_state),
    "a mistake raises": ("mistakes of an agent are observations with a kind", raising_at_mistakes),
    "a mistake without a kind": ("mistakes of an agent are observations with a kind", forgetting_the_kind),
    "text raises": ("plain text is answered", raising_at_text),
    "probes act": ("probes change nothing", acting_on_probes),
    "scores change": ("scores are pure and agree with the pass mark", scoring_at_random),
    "success below the mark": ("scores are pure and agree with the pass mark", scoring_against_the_mark),
    "strangers are opened": ("a foreign task is refused", opening_strangers),
    "hidden text is shown": ("its canary is not shown", showing_the_canary),
    "closing twice raises": ("a session may be closed twice", closing_once),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_caught_by_its_check(fault: str) -> None:
    """An environment that breaks one rule of the contract fails the check of that rule."""
    check, make = broken_coat_check(fault)
    subject = subject_of("coat_check", make)
    assert check in [found.name for found in conformance(subject) if not found.holds]


def test_every_check_can_fail() -> None:
    """There is a fault for each check, but for the one of openings, which a changed opening fails."""
    assert set(CHECKS) - {check for check, _ in FAULTS.values()} == {"a task opens the same way twice"}
    defined = module_of("coat_check")
    plain, drawn = defined["CoatCheckSession"].__init__, iter(range(10_000))

    def start(self: Any, task: Task) -> None:
        plain(self, task)
        self.opening = self.opening.model_copy(update={"user": str(next(drawn))})

    defined["CoatCheckSession"].__init__ = start
    found = {check.name: check.holds for check in conformance(subject_of("coat_check", defined["CoatCheck"]))}
    assert not found["a task opens the same way twice"]


def test_the_heldout_split_is_never_listed_by_the_checks() -> None:
    """No check gets a held-out task: a look for the environment itself is never made."""
    looks: list[Look] = []
    defined = module_of("coat_check")
    plain = defined["CoatCheck"].heldout_tasks

    def spying(self: Any, look: Look) -> Any:
        looks.append(look)
        return plain(self, look)

    defined["CoatCheck"].heldout_tasks = spying
    assert all(check.holds for check in conformance(subject_of("coat_check", defined["CoatCheck"])))
    assert [look.environment for look in looks] == ["not-coat_check"]


def test_a_new_environment_passes_its_own_tests(tmp_path: Path) -> None:
    """What `evolve env new` writes runs as it is, under the name that was asked for."""
    start_environment("my_desk", tmp_path / "my_desk")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_my_desk.py"]
    run = subprocess.run(command, cwd=tmp_path / "my_desk", capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert f"{len(CHECKS) + 2} passed" in run.stdout


@pytest.mark.parametrize(
    "name", ["", "a", "My_desk", "my-desk", "2desks", "class", "json", "evolve", "../desk", "d" * 50]
)
def test_a_name_that_is_no_module_is_refused(name: str, tmp_path: Path) -> None:
    """Nothing is written under a name that Python cannot import, or that is a module already."""
    with pytest.raises(UserError):
        start_environment(name, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_file_in_the_way_stays(tmp_path: Path) -> None:
    """A folder that holds one of the files already is refused, and stays as it is."""
    (tmp_path / "pyproject.toml").write_text("mine")
    with pytest.raises(UserError, match=r"holds pyproject\.toml already"):
        start_environment("my_desk", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["pyproject.toml"]
