"""ALFWorld's games are read whole and divided by a fixed rule, whichever form they came in. Needs no engine."""

from __future__ import annotations

import lzma
import shutil
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from evolve.environments.alfworld import Alfworld, create
from evolve.environments.alfworld.benchmark import BENCHMARK, DOMAIN, GRAMMAR, compact
from evolve.environments.alfworld.games import Game, read_games
from evolve.environments.alfworld.options import OPTIONS, read_options
from evolve.environments.alfworld.splits import in_rounds, read_loop_side
from evolve.environments.data import BenchmarkData
from evolve.errors import ConfigError, EnvironmentBroken, SealError, UserError
from evolve.records import Look, LoopSplit, Split

SEEN = "valid_seen"
ALL: dict[LoopSplit, int | None] = {Split.TRAIN: None, Split.GUARD: None}
LOOK = Look(
    look_id="look-1",
    environment="alfworld",
    frozen_name="v1",
    harness="off",
    model="m",
    opened_at="2031-01-01T00:00:00Z",
    number=1,
)


@pytest.fixture(scope="session")
def folder(benchmark_data: Callable[[str], Path]) -> Path:
    return benchmark_data("alfworld")


@pytest.fixture(scope="session")
def seen(folder: Path) -> list[Game]:
    return list(read_games(BenchmarkData(BENCHMARK, folder), SEEN))


@pytest.fixture
def tree(folder: Path, tmp_path: Path) -> Path:
    """A folder as alfworld-download makes it, with six games; the same six stand in for the held-out ones."""
    for split in (SEEN, "valid_unseen"):
        for game in (folder / "raw_games" / SEEN).glob("*/*/game.tw-pddl"):
            target = tmp_path / "json_2.1.1" / split / game.relative_to(folder / "raw_games" / SEEN)
            target.parent.mkdir(parents=True)
            shutil.copyfile(game, target)
    return tmp_path


def environment(folder: Path, **options: object) -> Alfworld:
    """Make the environment without asking for the engine, which lists tasks as well."""
    return Alfworld(BenchmarkData(BENCHMARK, folder), read_options({"games": SEEN, **options}))


@pytest.mark.benchmark_data
def test_compact_games_are_the_original_files_byte_for_byte(folder: Path, seen: list[Game]) -> None:
    """Every compact game is rebuilt to its digest, and the six that are here as files are equal to those."""
    assert len(seen) == 140
    by_id = {game.game_id: game.content() for game in seen}  # `content` compares with the digest
    files = list((folder / "raw_games" / SEEN).glob("*/*/game.tw-pddl"))
    assert len(files) == 6
    for path in files:
        assert by_id["/".join((SEEN, *path.parts[-3:-1]))] == path.read_bytes()


@pytest.mark.benchmark_data
def test_a_tree_gives_the_same_games_as_a_compact_file(tree: Path, seen: list[Game]) -> None:
    """Id, task sentence, family and digest are equal, so tasks and recorded episodes outlive a change of form."""
    from_tree = list(read_games(BenchmarkData(BENCHMARK, tree), SEEN))
    assert len(from_tree) == 6
    assert set(from_tree) <= set(seen)
    assert {game.family for game in from_tree} == {game.family for game in seen}


@pytest.mark.benchmark_data
def test_what_upstream_would_not_play_is_not_listed(tree: Path) -> None:
    """A game that is marked as not solvable is left out."""
    path = next((tree / "json_2.1.1" / SEEN).glob("*/*/game.tw-pddl"))
    game = orjson.loads(path.read_bytes())
    path.write_bytes(path.read_bytes().replace(b'"solvable": true', b'"solvable": false'))
    left = list(read_games(BenchmarkData(BENCHMARK, tree), SEEN))
    assert len(left) == 5
    assert all(orjson.loads(one.content())["pddl_problem"] != game["pddl_problem"] for one in left)


@pytest.mark.benchmark_data
def test_train_and_guard_share_no_kind_and_are_balanced(seen: list[Game]) -> None:
    """Trials of one chore in one room stand on one side; about a quarter is guard; prefixes hold all families."""
    side = read_loop_side(seen, ALL)
    train, guard = (list(side.offered[split].values()) for split in (Split.TRAIN, Split.GUARD))
    assert len(train) + len(guard) == 140
    assert 0.2 < len(guard) / 140 < 0.3
    assert not {game.kind for game in train} & {game.kind for game in guard}
    for games in (train, guard):
        assert set(Counter(game.family for game in games[:12]).values()) == {2}


@pytest.mark.benchmark_data
def test_a_task_stays_on_its_side_whatever_else_is_there(seen: list[Game]) -> None:
    """Order and side follow from a game's own names: half of the games are divided as they are among all."""
    whole, half = read_loop_side(seen, ALL), read_loop_side(seen[::2], ALL)
    for split in ALL:
        assert list(half.offered[split].values()) == in_rounds(
            g for g in seen[::2] if g.game_id in whole.offered[split]
        )
    assert read_loop_side(reversed(seen), ALL).offered == whole.offered


@pytest.mark.benchmark_data
def test_limits_keep_a_prefix_and_do_not_change_the_digest(seen: list[Game]) -> None:
    """The first so many tasks are kept; the digest is over all games, so that recorded episodes stay good."""
    whole = read_loop_side(seen, ALL)
    short = read_loop_side(seen, {Split.TRAIN: 7, Split.GUARD: 0})
    assert list(short.offered[Split.TRAIN]) == list(whole.offered[Split.TRAIN])[:7]
    assert not short.offered[Split.GUARD]
    assert short.digest == whole.digest
    assert read_loop_side(seen[1:], ALL).digest != whole.digest


@pytest.mark.benchmark_data
def test_the_heldout_side_is_sealed_and_says_when_it_is_not_there(folder: Path) -> None:
    """Without `valid_unseen` there is no commitment, and a look is answered with what to bring."""
    alfworld = environment(folder)
    assert alfworld.heldout_digest() is None
    with pytest.raises(ConfigError, match=r"json_2\.1\.1/valid_unseen or games_valid_unseen\.jsonl\.xz.*bench fetch"):
        alfworld.heldout_tasks(LOOK)
    with pytest.raises(SealError, match="look-1 is for other"):
        alfworld.heldout_tasks(LOOK.model_copy(update={"environment": "other"}))
    with pytest.raises(SealError, match="against a recorded look only"):
        alfworld.tasks(Split.HELDOUT)  # type: ignore[arg-type]


@pytest.mark.benchmark_data
@pytest.mark.parametrize("content", [b"", b"no archive", lzma.compress(b"{}\n"), lzma.compress(b"no JSON\n")])
def test_a_heldout_file_of_another_kind_is_said(folder: Path, tmp_path: Path, content: bytes) -> None:
    """The held-out file is not pinned; one that holds something else is a configuration error that names it."""
    for name in (DOMAIN, GRAMMAR, compact("valid_seen")):
        (tmp_path / name).symlink_to(folder / name)
    (tmp_path / compact("valid_unseen")).write_bytes(content)
    with pytest.raises(ConfigError, match=r"games_valid_unseen\.jsonl\.xz does not hold games"):
        environment(tmp_path).heldout_tasks(LOOK)


@pytest.mark.benchmark_data
def test_heldout_games_are_served_where_they_are(tree: Path) -> None:
    """With `valid_unseen` in place they are listed against a look, limited by their option, and committed to."""
    alfworld = environment(tree)
    tasks = alfworld.heldout_tasks(LOOK)
    assert {task.task_id.split("/")[0] for task in tasks} == {"valid_unseen"}
    assert {task.split for task in tasks} == {Split.HELDOUT}
    assert len(tasks) == 6
    assert alfworld.heldout_digest() == environment(tree).heldout_digest()
    two = environment(tree, heldout=2)
    assert list(two.heldout_tasks(LOOK)) == list(tasks)[:2]
    assert two.heldout_digest() != alfworld.heldout_digest()


@pytest.mark.benchmark_data
def test_only_listed_tasks_are_opened(folder: Path) -> None:
    """A task that is changed, or beyond the limit, is refused by name."""
    alfworld, small = environment(folder), environment(folder, train=1)
    listed = alfworld.tasks(Split.TRAIN)
    for task in (
        listed[1],
        listed[0].model_copy(update={"text": "win."}),
        listed[0].model_copy(update={"task_id": "x"}),
    ):
        with pytest.raises(UserError, match=f"{task.task_id} is no task of alfworld"):
            small.open(task, 0)


@pytest.mark.benchmark_data
def test_a_game_that_changed_since_it_was_listed_is_not_played(tree: Path) -> None:
    """A changed or lost file is a broken environment, not another game under the same name."""
    changed, lost = list(read_games(BenchmarkData(BENCHMARK, tree), SEEN))[:2]
    path = tree / "json_2.1.1" / changed.game_id / "game.tw-pddl"
    path.write_bytes(path.read_bytes() + b" ")
    (tree / "json_2.1.1" / lost.game_id / "game.tw-pddl").unlink()
    with pytest.raises(EnvironmentBroken, match="not what it was"):
        changed.content()
    with pytest.raises(EnvironmentBroken, match="cannot be read"):
        lost.content()


@pytest.mark.benchmark_data
def test_a_compact_file_that_is_not_the_pinned_one_is_refused(folder: Path, tmp_path: Path) -> None:
    """Data is checked by digest before it is read."""
    for name in ("alfred.pddl", "alfred_grammar_template.twl2", "games_valid_seen.jsonl.xz"):
        shutil.copyfile(folder / name, tmp_path / name)
    (tmp_path / "alfred.pddl").write_text("(define (domain other))")
    with pytest.raises(ConfigError, match=r"alfred\.pddl is not the file that alfworld is pinned to"):
        environment(tmp_path).tasks(Split.TRAIN)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"colour": "red"}, f"unknown option colour; options are {', '.join(OPTIONS)}"),
        ({"games": "valid_unseen"}, "option games must be one of train, valid_train, valid_seen, got 'valid_unseen'"),
        ({"games": 1}, "option games must be one of"),
        ({"train": -1}, "option train must be a whole number from 0 up, got -1"),
        ({"guard": True}, "option guard must be a whole number from 0 up, got True"),
        ({"heldout": "all"}, "option heldout must be a whole number from 0 up, got 'all'"),
        ({"step_limit": 0}, "option step_limit must be a whole number from 1 up, got 0"),
        ({"data": 3}, "option data must be a folder, got 3"),
    ],
)
def test_a_wrong_option_is_a_configuration_error(options: dict[str, object], words: str) -> None:
    """The message names the option, what it may be and what was given."""
    with pytest.raises(ConfigError) as caught:
        create(options)
    assert words in str(caught.value)


def test_without_the_extra_the_message_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the engine is not installed, the error says what brings it."""
    monkeypatch.setitem(sys.modules, "alfworld", None)
    with pytest.raises(ConfigError, match=r"alfworld is not installed; pip install 'evolve-harness\[alfworld\]'"):
        create({})


def test_importing_the_environment_imports_no_engine() -> None:
    """The extra is needed when a game is played, not when the package is looked at."""
    assert "textworld" not in sys.modules
    assert "alfworld" not in sys.modules
