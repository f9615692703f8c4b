"""DBBench's tasks, splits and session on the embedded engine: who scores, what is said, what stays sealed."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from evolve.environments.data import BenchmarkData
from evolve.environments.dbbench import create
from evolve.environments.dbbench.benchmark import BENCHMARK, DEV, OPEN, STANDARD
from evolve.environments.dbbench.divide import OPEN_INDICES, divide
from evolve.environments.dbbench.entries import CHANGES, Entry, divided, open_entries
from evolve.environments.dbbench.environment import DbBench
from evolve.environments.dbbench.gold import gold_calls
from evolve.environments.dbbench.session import COMMIT, EXECUTE, TOOLS, DbSession
from evolve.errors import ConfigError, SealError, UserError
from evolve.records import Call, ErrorKind, Look, Observation, Split, Task

pytest.importorskip("sqlglot", reason="the extra dbbench is not installed")
pytestmark = pytest.mark.benchmark_data
Begin = Callable[[DbBench, Task], DbSession]
LOOK = Look(
    look_id="look-1",
    environment="dbbench",
    frozen_name="v1",
    harness="off",
    model="m",
    opened_at="2031-01-01T00:00:00Z",
    number=1,
)


def sql(query: str) -> Call:
    return Call(tool=EXECUTE.name, arguments={"query": query})


def commit(answers: object) -> Call:
    return Call(tool=COMMIT.name, arguments={"answers": answers})


@pytest.fixture(scope="session")
def folder(benchmark_data: Callable[[str], Path]) -> Path:
    return benchmark_data("dbbench")


@pytest.fixture(scope="session")
def bench(folder: Path) -> DbBench:
    return create({"data": str(folder)})


@pytest.fixture(scope="session")
def entries(folder: Path) -> dict[str, Entry]:
    return {entry.task_id: entry for entry in open_entries(BenchmarkData(BENCHMARK, folder))}


@pytest.fixture
def full_folder(folder: Path, tmp_path: Path) -> Path:
    """A data folder with all 300 standard tasks: the open ones as they are, others made up."""
    opened = {raw.pop("index"): raw for raw in map(json.loads, (folder / OPEN).read_text("utf-8").splitlines())}
    made_up = {**opened[3], "description": "a task that is held out"}
    lines = [json.dumps(opened.get(index, made_up)) for index in range(300)]
    (tmp_path / STANDARD).write_text("\n".join(lines), "utf-8")
    for name in (DEV, OPEN):
        shutil.copyfile(folder / name, tmp_path / name)
    return tmp_path


@pytest.fixture
def begin() -> Iterator[Begin]:
    """Open sessions and close them after the test."""
    with ExitStack() as stack:
        yield lambda bench, task: stack.enter_context(closing(bench.open(task, 0)))


def tasks_of(bench: DbBench) -> list[Task]:
    return [*bench.tasks(Split.TRAIN), *bench.tasks(Split.GUARD)]


def played(bench: DbBench, task: Task, calls: list[Call]) -> bool:
    session = bench.open(task, 0)
    for call in calls:
        session.step(call)
    session.close()
    return session.score().success


def test_gold_solves_every_open_task(bench: DbBench, entries: dict[str, Entry]) -> None:
    """The benchmark's own SQL and labels reach 1.0 on all 212 open tasks of the embedded engine."""
    missed = [task.task_id for task in tasks_of(bench) if not played(bench, task, gold_calls(entries[task.task_id]))]
    assert (len(entries), missed) == (212, [])


def test_nothing_done_is_no_success(bench: DbBench, entries: dict[str, Entry]) -> None:
    """Silence scores 0; an empty answer scores 0 on every change, 1 on the seven questions whose answer is nothing."""
    assert not any(played(bench, task, []) for task in tasks_of(bench))
    lucky = [task for task in tasks_of(bench) if played(bench, task, [commit("")])]
    assert not [task for task in lucky if task.family in CHANGES]
    assert [entries[task.task_id].labels for task in lucky] == [(label,) for label in ["0.0", *["none"] * 3] * 2][:7]


def test_splits_are_disjoint_and_a_quarter_of_each_family_is_guard(bench: DbBench) -> None:
    """Training and guard tasks share nothing, and each family gives a quarter, rounded, to guard."""
    train, guard = (bench.tasks(split) for split in (Split.TRAIN, Split.GUARD))
    assert not {task.task_id for task in train} & {task.task_id for task in guard}
    whole, guarded = Counter(t.family for t in (*train, *guard)), Counter(t.family for t in guard)
    assert (len(train), len(guard)) == (158, 54)
    assert {family: guarded[family] for family in whole} == {family: round(n / 4) for family, n in whole.items()}


def test_the_division_depends_on_ids_alone(entries: dict[str, Entry]) -> None:
    """The order in which entries are read changes neither the splits nor their order."""
    assert divided(list(entries.values())) == divided(list(entries.values())[::-1])


def test_a_prefix_has_all_common_families(folder: Path) -> None:
    """A limit keeps the first tasks of the same list, and these are of several families."""
    short = create({"data": str(folder), "train": 12, "guard": 0})
    assert short.tasks(Split.TRAIN) == create({"data": str(folder)}).tasks(Split.TRAIN)[:12]
    assert len({task.family for task in short.tasks(Split.TRAIN)}) >= 5
    assert short.tasks(Split.GUARD) == []


@pytest.mark.parametrize(
    ("call", "text", "kind"),
    [
        (sql("SELEC 1"), 'near "SELEC": syntax error', ErrorKind.REJECTED),
        (sql("SELECT nope FROM speeches"), "no such column: nope", ErrorKind.REJECTED),
        (sql("SELECT `nope` FROM speeches"), "no such column: nope", ErrorKind.REJECTED),
        (sql("SELECT * FROM missing"), "no such table: missing", ErrorKind.REJECTED),
        (sql("SELECT 1; SELECT 2"), "You can only execute one statement at a time.", ErrorKind.REJECTED),
        (sql("SELECT * FROM speeches WHERE Recipient = 'nobody'"), "[]", None),
        (sql(""), "[]", None),
        (
            Call(tool=EXECUTE.name, arguments={}),
            "Error: Failed to parse tool call. Tool call format is incorrect.",
            ErrorKind.INVALID_ARGS,
        ),
        (
            Call(tool=EXECUTE.name, arguments={"query": 5}),
            "Error: Failed to parse tool call. Tool call format is incorrect.",
            ErrorKind.INVALID_ARGS,
        ),
        (
            Call(tool=COMMIT.name, arguments={}),
            "Error: Failed to parse tool call. Tool call format is incorrect.",
            ErrorKind.INVALID_ARGS,
        ),
        (
            Call(tool="answer", arguments={"x": 1}),
            "Invalid function call. Please call a tool instead.",
            ErrorKind.UNKNOWN_TOOL,
        ),
        (
            Call(tool=EXECUTE.name, arguments={"sql": "SELECT 1"}),
            "Error: Failed to parse tool call. Tool call format is incorrect.",
            ErrorKind.INVALID_ARGS,
        ),
        (Call(tool=EXECUTE.name, arguments={"why": "to see", "query": "SELECT 1"}), "[(1,)]", None),
    ],
)
def test_what_goes_wrong_is_said_in_the_benchmarks_words(
    begin: Begin, bench: DbBench, call: Call, text: str, kind: ErrorKind | None
) -> None:
    """Errors are observations with upstream's own text and a kind of ours; they end nothing."""
    task = next(task for task in tasks_of(bench) if task.task_id == "standard-203")
    session = begin(bench, task)
    assert session.step(call) == Observation(text=text, error_kind=kind)


def test_plain_text_is_no_call(begin: Begin, bench: DbBench) -> None:
    """A message without a call gets upstream's text, whatever it says."""
    session = begin(bench, bench.tasks(Split.TRAIN)[0])
    for said in ("", "The answer is 5."):
        answer = session.say(said)
        assert answer.text == "Internal error: No tool calls found despite finish reason."
        assert answer.error_kind is ErrorKind.MALFORMED_CALL


def test_long_rows_are_cut(begin: Begin, bench: DbBench) -> None:
    """After 800 characters comes the mark, as upstream cuts."""
    task = next(task for task in tasks_of(bench) if task.task_id == "standard-203")
    answer = begin(bench, task).step(sql("SELECT * FROM speeches"))
    assert answer.text.endswith("[TRUNCATED]")
    assert len(answer.text) == 800 + len("[TRUNCATED]")


def test_nothing_happens_after_the_answer(begin: Begin, bench: DbBench) -> None:
    """The first committed answer stands; later calls and words change nothing."""
    session = begin(bench, bench.tasks(Split.TRAIN)[0])
    assert session.step(commit("no")).done
    before = session.score()
    for answer in (session.step(sql("SELECT 1")), session.step(commit("yes")), session.say("hello")):
        assert (answer.done, answer.error_kind) == (True, ErrorKind.NO_EFFECT)
    assert session.score() == before


def test_a_change_counts_only_once_committed(begin: Begin, bench: DbBench, entries: dict[str, Entry]) -> None:
    """The right table without commit_final_answer scores 0."""
    task = next(task for task in bench.tasks(Split.TRAIN) if task.family == "UPDATE")
    session = begin(bench, task)
    session.step(gold_calls(entries[task.task_id])[0])
    assert not session.score().success
    session.step(commit("done"))
    assert session.score().success
    session.close()
    assert session.score().success


def test_no_tool_is_read_only(begin: Begin, bench: DbBench) -> None:
    """SQL may change the table, so no tool is marked read-only and a probe runs nothing."""
    session = begin(bench, bench.tasks(Split.TRAIN)[0])
    assert [tool.read_only for tool in TOOLS] == [False, False]
    assert session.probe(sql("SELECT 1")).error_kind is ErrorKind.REJECTED


def test_every_score_names_the_engine(begin: Begin, bench: DbBench) -> None:
    """Error texts and numbers differ by engine, so scores and card say which one it was."""
    score = begin(bench, bench.tasks(Split.TRAIN)[0]).score()
    assert score.version == bench.card.version
    assert "sqlite 3." in score.version


def test_sessions_repeat_and_do_not_touch_each_other(begin: Begin, bench: DbBench, entries: dict[str, Entry]) -> None:
    """Sixteen interleaved sessions, in threads, see what each sees alone."""
    tasks = [task for task in bench.tasks(Split.TRAIN) if task.family in CHANGES][:8] * 2

    def calls(task: Task) -> list[Call]:
        table = f"`{entries[task.task_id].table.name}`"
        look = sql(f"SELECT COUNT(*), RAND() FROM {table}")
        return [look, sql(f"DELETE FROM {table}"), look, *gold_calls(entries[task.task_id])[1:]]

    alone = []
    for task in tasks:
        session = begin(bench, task)
        alone.append([session.step(call).text for call in calls(task)])

    async def together() -> list[list[str]]:
        sessions = [begin(bench, task) for task in tasks]
        seen: list[list[str]] = [[] for _ in tasks]
        for turn in zip(*map(calls, tasks), strict=True):
            answers = await asyncio.gather(
                *(asyncio.to_thread(s.step, call) for s, call in zip(sessions, turn, strict=True))
            )
            for texts, answer in zip(seen, answers, strict=True):
                texts.append(answer.text)
        return seen

    assert asyncio.run(together()) == alone


def test_openings_tell_the_task_and_no_gold(begin: Begin, bench: DbBench, entries: dict[str, Entry]) -> None:
    """Two openings are equal, hold the task's text, and neither task id nor gold hash."""
    for task in tasks_of(bench)[:20]:
        opening = begin(bench, task).opening
        assert opening == begin(bench, task).opening
        assert opening.user == task.text
        assert task.task_id not in opening.model_dump_json()
        assert (entries[task.task_id].table_hash or "-") not in opening.user


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"engin": "sqlite"}, "unknown option engin"),
        ({"engine": "postgresql://x"}, "option engine must be"),
        ({"engine": 5}, "option engine must be"),
        ({"train": -1}, "option train must be a whole number"),
        ({"guard": True}, "option guard must be a whole number"),
        ({"data": 5}, "option data must be a folder"),
    ],
)
def test_a_wrong_option_is_named(options: dict[str, object], named: str) -> None:
    """A mistake in the configuration is a sentence that names the option."""
    with pytest.raises(ConfigError, match=named):
        create(options)


def test_absent_files_are_asked_for_by_name(tmp_path: Path) -> None:
    """Without its files the environment says which one it needs and what brings it."""
    with pytest.raises(ConfigError, match=r"dbbench needs dev.jsonl in .*evolve bench fetch dbbench"):
        create({"data": str(tmp_path)}).tasks(Split.TRAIN)


def test_another_file_of_that_name_is_refused(tmp_path: Path) -> None:
    """A file whose digest differs is not played."""
    (tmp_path / DEV).write_text("{}")
    with pytest.raises(ConfigError, match="SHA-256 differs"):
        create({"data": str(tmp_path)}).tasks(Split.TRAIN)


@pytest.mark.parametrize(
    ("module", "extra", "engine"),
    [("sqlglot", "dbbench", "sqlite"), ("pymysql", "dbbench-mysql", "mysql://root@127.0.0.1")],
)
def test_an_absent_extra_is_named(module: str, extra: str, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the engine's package is not installed the message names the extra that brings it."""
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ConfigError, match=rf"pip install 'evolve-harness\[{extra}\]'"):
        create({"engine": engine})


def test_without_the_full_file_nothing_is_held_out(bench: DbBench) -> None:
    """The open files alone give no commitment, and asking for held-out tasks says which file is missing."""
    assert bench.heldout_digest() is None
    with pytest.raises(ConfigError, match=r"dbbench needs standard.jsonl"):
        bench.heldout_tasks(LOOK)


def test_the_full_file_serves_the_other_half(begin: Begin, full_folder: Path, bench: DbBench) -> None:
    """With all 300 standard tasks the 148 that are not open are held out, under their own ids."""
    full = create({"data": str(full_folder)})
    heldout = full.heldout_tasks(LOOK)
    assert len(heldout) == 148
    assert not {task.task_id for task in heldout} & {task.task_id for task in tasks_of(full)}
    assert full.heldout_digest() is not None
    assert begin(full, heldout[0]).step(sql("SELECT 1")).text == "[(1,)]"
    assert full.card == bench.card


def test_the_loop_never_reads_the_full_file(begin: Begin, full_folder: Path) -> None:
    """Training and guard tasks are listed and opened with a full file that cannot be read at all."""
    (full_folder / STANDARD).write_bytes(b"\xff not JSON")
    broken = create({"data": str(full_folder)})
    assert len(tasks_of(broken)) == 212
    begin(broken, broken.tasks(Split.TRAIN)[0])
    with pytest.raises(ConfigError, match=r"standard.jsonl is not DBBench's file"):
        broken.heldout_tasks(LOOK)


def test_held_out_tasks_need_a_look_of_this_environment(bench: DbBench) -> None:
    """There is no other way to them: not by the loop's list, not with a look for another environment."""
    with pytest.raises(SealError):
        bench.tasks(Split.HELDOUT)  # type: ignore[arg-type]
    with pytest.raises(SealError):
        bench.heldout_tasks(LOOK.model_copy(update={"environment": "household"}))


def test_a_strange_task_is_not_opened(bench: DbBench) -> None:
    """A task with another text or an unknown id is refused."""
    task = bench.tasks(Split.TRAIN)[0]
    for strange in (task.model_copy(update={"text": "?"}), task.model_copy(update={"task_id": "dev-99"})):
        with pytest.raises(UserError):
            bench.open(strange, 0)


def test_the_open_half_is_written_from_the_full_file(full_folder: Path, folder: Path) -> None:
    """Who has the full file only gets the open half from it, byte for byte the file that is pinned."""
    (full_folder / OPEN).unlink()
    assert divide(full_folder).read_bytes() == (folder / OPEN).read_bytes()
    assert len(OPEN_INDICES) == 152


def test_dividing_another_file_is_refused(tmp_path: Path) -> None:
    """A file that does not hold the standard tasks is named, and so is one that is not there."""
    with pytest.raises(ConfigError, match=r"needs standard.jsonl"):
        divide(tmp_path)
    (tmp_path / STANDARD).write_text("[]\n" * 300)
    with pytest.raises(ConfigError, match="does not hold the 300 standard tasks"):
        divide(tmp_path)
