"""The environment: card, task lists, the seal on the held-out games, and how a session is opened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from evolve.environments import children
from evolve.environments.alfworld.benchmark import BENCHMARK, HELDOUT_SPLIT, NAME, TREE, compact
from evolve.environments.alfworld.games import Game, has_games, read_games
from evolve.environments.alfworld.options import Options, read_options
from evolve.environments.alfworld.session import PASS_MARK, AlfworldSession
from evolve.environments.alfworld.splits import LoopSide, digest_of_games, in_rounds, read_loop_side
from evolve.environments.children import ChildPool
from evolve.environments.data import BenchmarkData
from evolve.environments.seal import require_look, require_loop_split
from evolve.environments.source import source_digest
from evolve.errors import ConfigError, UserError
from evolve.protocols import EnvironmentCard
from evolve.records import Look, LoopSplit, Split, Task, digest_of

VERSION = "2.1.1"
HERE = Path(__file__).parent
ENGINE = {"alfworld": "alfworld", "textworld": "textworld", "fast_downward": "fast-downward-textworld"}
"""Modules of the extra and the distributions that bring them; their versions decide what a game answers."""


def create(options: Mapping[str, object]) -> Alfworld:
    """Make the environment; docs/environments/alfworld.md describes the options.

    Raises:
        ConfigError: an option is wrong, the extra is not installed, or the games are not there.
    """
    chosen = read_options(options)
    data = BenchmarkData(BENCHMARK, options.get("data"))
    for module in ENGINE:  # looked for and not imported: importing alfworld makes a folder and sets a variable
        if find_spec(module) is None:
            raise ConfigError(f"{module} is not installed; pip install 'evolve-harness[{NAME}]' brings it")
    _require_games(data, chosen.games)
    return Alfworld(data, chosen)


class Alfworld:
    """ALFWorld's games. Train and guard come from one official split, held out is `valid_unseen`."""

    def __init__(self, data: BenchmarkData, options: Options) -> None:
        self._data = data
        self._options = options
        self._children = ChildPool(HERE / "engine.py")

    @cached_property
    def card(self) -> EnvironmentCard:
        """Name, limits and a digest over code, engine, step limit and all games of the loop's side."""
        return EnvironmentCard(
            name=NAME,
            version=VERSION,
            step_limit=self._options.step_limit,
            pass_mark=PASS_MARK,
            description="ALFWorld: household chores as text games, one command a step",
            digest=digest_of(
                [
                    source_digest(HERE, Path(children.__file__).parent),
                    _engine_versions(),
                    self._options.step_limit,
                    self._side.digest,
                ]
            ),
            is_blocking=True,
        )

    def tasks(self, split: LoopSplit) -> Sequence[Task]:
        """List the training or guard tasks.

        Raises:
            SealError: anything else was asked for.
        """
        require_loop_split(NAME, split)
        return [_task(game, split) for game in self._side.offered[split].values()]

    def heldout_tasks(self, look: Look) -> Sequence[Task]:
        """List the held-out tasks against a recorded look.

        Raises:
            SealError: the look is not for this environment.
            ConfigError: the held-out games are not there.
        """
        require_look(NAME, look)
        _require_games(self._data, HELDOUT_SPLIT)
        return [_task(game, Split.HELDOUT) for game in self._heldout.values()]

    def heldout_digest(self) -> str | None:
        """Return the SHA-256 over the held-out games on offer; None where they are not there."""
        return digest_of_games(self._heldout.values()) if has_games(self._data, HELDOUT_SPLIT) else None

    def open(self, task: Task, trial: int) -> AlfworldSession:
        """Open a session; all trials of a task are alike, since nothing here is random.

        Raises:
            UserError: the task is none of this environment's.
            EnvironmentBroken: the engine does not start the game.
        """
        offered = self._heldout if task.split is Split.HELDOUT else self._side.offered[task.split]
        game = offered.get(task.task_id)
        if game is None or task != _task(game, task.split):
            raise UserError(f"{task.task_id} is no task of {NAME} under its present options")
        return AlfworldSession(game, self._children)

    @cached_property
    def _side(self) -> LoopSide:
        return read_loop_side(
            read_games(self._data, self._options.games),
            {Split.TRAIN: self._options.train, Split.GUARD: self._options.guard},
        )

    @cached_property
    def _heldout(self) -> Mapping[str, Game]:
        games = in_rounds(read_games(self._data, HELDOUT_SPLIT))
        return {game.game_id: game for game in games[: self._options.heldout]}


def _task(game: Game, split: Split) -> Task:
    return Task(task_id=game.game_id, environment=NAME, split=split, family=game.family, text=game.text)


def _require_games(data: BenchmarkData, split: str) -> None:
    if not has_games(data, split):
        raise ConfigError(data.missing(f"{TREE}/{split} or {compact(split)}"))


def _engine_versions() -> dict[str, str]:
    return {name: metadata.version(name) for name in ENGINE.values()}
