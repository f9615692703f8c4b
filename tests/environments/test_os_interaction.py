"""OS interaction without a sandbox: its tasks, splits, seal, options, judging, and how its files are made."""

import hashlib
import json
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from os_machine import environment, problem

from evolve.environments.data import BenchmarkData
from evolve.environments.os_interaction import create
from evolve.environments.os_interaction.benchmark import BENCHMARK, DEV, STD, TRAIN
from evolve.environments.os_interaction.build import build, main
from evolve.environments.os_interaction.inline import inline
from evolve.environments.os_interaction.problems import Script, divided, read_problems
from evolve.environments.os_interaction.rootfs import read_rootfs
from evolve.environments.os_interaction.sandbox import Outcome, require_sandbox
from evolve.environments.os_interaction.scoring import is_match, score
from evolve.errors import ConfigError, SealError, UserError
from evolve.records import Look, Split

Folder = Callable[[str], Path]
NAME = "os_interaction"
LOOK = Look(look_id="l", environment=NAME, frozen_name="f", harness="h", model="m", opened_at="", number=1)


@pytest.fixture(scope="session")
def folder(benchmark_data: Folder) -> Path:
    return benchmark_data(NAME)


def row(number: int, **parts: object) -> str:
    made = {"id": f"std-{number:04d}", "description": "How many?", "init": [], "start": None, "example": None}
    return json.dumps({**made, "match": "7", "check": None, **parts}) + "\n"


def test_a_quarter_of_each_family_guards_by_the_hash_of_its_id(folder: Path) -> None:
    """Train and guard are disjoint, hold all 1,000 tasks, and of each family a quarter guards."""
    made = environment(folder)
    train, guard = made.tasks(Split.TRAIN), made.tasks(Split.GUARD)
    assert not {task.task_id for task in train} & {task.task_id for task in guard}
    assert (Counter(task.family for task in train), Counter(task.family for task in guard)) == (
        {"integer-match": 698, "string-match": 36, "size-match": 18},
        {"integer-match": 232, "string-match": 11, "size-match": 5},
    )
    assert [task.task_id for task in guard[:3]] == sorted(task.task_id for task in guard)[:3]


def test_a_tasks_split_does_not_depend_on_the_other_tasks_order(folder: Path) -> None:
    """The same tasks in another order are divided alike."""
    problems = read_problems(BenchmarkData(BENCHMARK, folder), DEV)
    one, other = divided(problems), divided(problems[::-1])
    assert all({p.task_id for p in one[split]} == {p.task_id for p in other[split]} for split in one)


def test_nothing_hidden_stands_in_a_task(folder: Path) -> None:
    """A task shows its description and how it is judged; no script of it."""
    problems = {p.task_id: p for p in read_problems(BenchmarkData(BENCHMARK, folder), TRAIN)}
    for task in environment(folder).tasks(Split.TRAIN):
        shown = task.model_dump_json()
        assert problems[task.task_id].description.strip() == task.text
        assert all(json.dumps(script.code)[1:-1] not in shown for script in problems[task.task_id].check if script)


def test_the_heldout_split_is_sealed_and_absent_here(folder: Path) -> None:
    """Held-out tasks cannot be listed without a look, and where their file is absent the error says what brings it."""
    made = environment(folder)
    with pytest.raises(SealError):
        made.tasks(Split.HELDOUT)  # type: ignore[arg-type]
    with pytest.raises(SealError):
        made.heldout_tasks(LOOK.model_copy(update={"environment": "household"}))
    assert made.heldout_digest() is None
    with pytest.raises(ConfigError, match=r"needs os_std.jsonl in .*; `evolve bench fetch os_interaction` says how"):
        made.heldout_tasks(LOOK)


def test_full_data_serves_the_heldout_tasks(tmp_path: Path) -> None:
    """With os_std.jsonl at hand the held-out tasks are listed in its order and committed to by a digest."""
    (tmp_path / STD).write_text(row(0) + row(1, match={"regex": "^x"}), "utf-8")
    made = environment(tmp_path)
    assert [(task.task_id, task.split) for task in made.heldout_tasks(LOOK)] == [
        ("std-0000", Split.HELDOUT),
        ("std-0001", Split.HELDOUT),
    ]
    before = made.heldout_digest()
    (tmp_path / STD).write_text(row(0) + row(1, match={"regex": "^y"}), "utf-8")
    assert before != environment(tmp_path).heldout_digest()


@pytest.mark.parametrize(
    "line",
    ["[]\n", "{}\n", "no json\n", row(0, match=None), row(0, match=None, check=[None]), row(0, init=[{"code": "x"}])],
)
def test_a_file_of_something_else_is_a_clear_error(tmp_path: Path, line: str) -> None:
    """A held-out file that does not hold tasks is named."""
    (tmp_path / STD).write_text(line, "utf-8")
    with pytest.raises(ConfigError, match=r"os_std.jsonl does not hold tasks of os_interaction"):
        environment(tmp_path).heldout_tasks(LOOK)


def test_absent_and_foreign_data_are_clear_errors(tmp_path: Path) -> None:
    """Without the training file, or with another one, the error says which file and how to bring it."""
    with pytest.raises(ConfigError, match=r"needs os_train.jsonl in .*; `evolve bench fetch os_interaction` says how"):
        environment(tmp_path).tasks(Split.TRAIN)
    (tmp_path / TRAIN).write_text("", "utf-8")
    with pytest.raises(ConfigError, match="is not the file that os_interaction is pinned to"):
        environment(tmp_path).tasks(Split.TRAIN)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"nope": 1}, "unknown option nope; options are data, rootfs, set, timeout_s, train, guard, heldout"),
        ({"train": -1}, "option train must be a whole number from 0 up, got -1"),
        ({"guard": True}, "option guard must be a whole number from 0 up, got True"),
        ({"set": "std"}, "option set must be one of train, dev, got 'std'"),
        ({"set": ["dev"]}, "option set must be one of train, dev"),
        ({"timeout_s": 0}, "option timeout_s must be a number above 0 and up to 600, got 0"),
        ({"rootfs": 3}, "option rootfs must be a path, got 3"),
        ({"data": 3}, "option data must be a folder, got 3"),
    ],
)
def test_bad_options_are_named(options: dict[str, object], words: str) -> None:
    """Each bad option is a configuration error that names option, value and what would do."""
    with pytest.raises(ConfigError) as raised:
        create(options)
    assert words in str(raised.value)


def test_what_is_missing_for_a_sandbox_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without programs, without root or off Linux the error says what is missing."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(ConfigError, match="needs bwrap, unshare, mount on PATH; `apt-get install bubblewrap"):
        require_sandbox()
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(ConfigError, match="needs root"):
        require_sandbox()
    monkeypatch.setattr("sys.platform", "darwin")
    with pytest.raises(ConfigError, match="needs Linux"):
        require_sandbox()


def test_a_root_file_system_that_is_not_whole_is_refused(tmp_path: Path) -> None:
    """No manifest, or a marker that is not the manifest's, is an error with the command that builds one."""
    with pytest.raises(ConfigError, match=r"no root file system in .*python -m evolve.environments.os_interaction"):
        read_rootfs(tmp_path)
    (tmp_path / "root/var/lib").mkdir(parents=True)
    (tmp_path / "mount").mkdir()
    (tmp_path / "manifest.json").write_text('{"suite": "s", "packages": [], "marker": "a"}', "ascii")
    (tmp_path / "root/var/lib/evolve-rootfs").write_text("b", "ascii")
    with pytest.raises(ConfigError, match="is not whole"):
        read_rootfs(tmp_path)


def test_a_build_that_cannot_start_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not root, no debootstrap and a folder that is there already are told apart, and nothing is left behind."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert main(["--into", str(tmp_path / "new")]) == 2
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(UserError, match="debootstrap is not on PATH"):
        build(tmp_path / "new")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("match", "committed", "is_right"),
    [
        ("3", "3", True),
        ("3", " 3\n", True),
        ("3", "3.", False),
        ("3", 3, False),
        ("3", None, False),
        ({"answer": "3"}, " 3", False),
        ({"answer": "3", "strip": True}, " 3", True),
        ({"regex": "^a+$"}, "aaa", True),
        ({"regex": "^a+$"}, "aab", False),
        ({"regex": "a"}, 3, False),
        ({}, "", False),
    ],
)
def test_stored_answers_are_compared_as_upstream_does(match: object, committed: object, is_right: bool) -> None:
    """A stored answer is equal after stripping, or a regular expression is found; what is no text is wrong."""
    assert is_match(match, committed) is is_right  # type: ignore[arg-type]


def test_a_chain_hands_each_script_the_answer_and_the_outputs_before_it() -> None:
    """None stands for the example; parameters grow by each output; the first failing script ends the chain."""
    asked: list[list[str]] = []

    def run(argv: list[str]) -> Outcome:
        asked.append(argv)
        return Outcome(b"%d" % len(asked), status=len(asked) == 3, is_late=False)

    chain = (None, Script("python", "p"), Script("bash", "fails"), Script("bash", "never"))
    task = problem(check=chain, example=Script("bash", "ex"))
    assert score(task, "a", run).value == 0.0
    assert asked == [
        ["bash", "-c", "ex", "--", "a"],
        ["python3", "-c", "p", "a", "1"],
        ["bash", "-c", "fails", "--", "a", "1", "2"],
    ]


def test_a_check_that_runs_out_of_time_is_wrong() -> None:
    """A late check counts as failed even where its status is 0."""
    assert not score(problem(), "a", lambda _: Outcome(b"", status=0, is_late=True)).success


def test_files_are_made_from_a_checkout_and_checked(tmp_path: Path) -> None:
    """Scripts are inlined task by task; what does not have the pinned digest is refused."""
    data = tmp_path / "data"
    (data / "data").mkdir(parents=True)
    (data / "scripts/dev/check").mkdir(parents=True)
    (data / "scripts/dev/check/0.sh").write_text("exit 0", "utf-8")
    evaluation = {"check": {"file": "check/0.sh"}, "example": "true"}
    tasks = [{"description": "d", "create": {"init": "touch /x"}, "evaluation": evaluation}]
    (data / "data/dev.json").write_text(json.dumps(tasks), "utf-8")
    with pytest.raises(ConfigError, match="is not the file that os_interaction is pinned to"):
        inline(data, tmp_path / "out")
    assert json.loads((tmp_path / "out" / DEV).read_text("utf-8")) == {
        "id": "dev-0000",
        "source": "data/dev.json",
        "description": "d",
        "labels": None,
        "image": "default",
        "init": [{"language": "bash", "code": "touch /x"}],
        "start": None,
        "match": None,
        "check": [{"language": "bash", "code": "exit 0", "file": "check/0.sh"}],
        "example": {"language": "bash", "code": "true"},
    }
    with pytest.raises(ConfigError, match="is not data/os_interaction of AgentBench"):
        inline(tmp_path, tmp_path / "out")


def test_the_card_follows_the_data_and_not_the_limits(folder: Path) -> None:
    """The digest changes with the set of tasks and stays under limits."""
    card = environment(folder).card
    assert (card.step_limit, card.pass_mark, card.is_blocking) == (8, 1.0, True)
    assert card.digest != environment(folder, open_file=DEV).card.digest
    assert card == environment(folder).card
    assert len(card.digest) == len(hashlib.sha256().hexdigest())
