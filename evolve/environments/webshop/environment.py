"""The environment: card, task lists, the seal on the held-out goals, and how a session is opened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from importlib import metadata
from pathlib import Path

from evolve.environments.data import BenchmarkData, need_module
from evolve.environments.seal import require_look, require_loop_split
from evolve.environments.source import source_digest
from evolve.environments.webshop.benchmark import BENCHMARK, EXTRA, GOALS, HELDOUT, NAME, PRODUCTS
from evolve.environments.webshop.catalogue import Catalogue
from evolve.environments.webshop.goals import HELDOUT_END, Goal, divide, read_goals
from evolve.environments.webshop.options import Options, read_options
from evolve.environments.webshop.scoring import PASS_MARK, Scorer
from evolve.environments.webshop.session import ShoppingSession
from evolve.environments.webshop.titles import create_subjects
from evolve.errors import ConfigError, UserError
from evolve.protocols import EnvironmentCard
from evolve.records import Look, LoopSplit, Split, Task, digest_of

DECIDING = ("nltk", "rapidfuzz")
"""Distributions whose versions decide rankings and scores; those of the title parser stand in the scorer's version."""


class WebShop:
    """A shop, its goals and its scorer. Sessions share products and index, which are read at the first use."""

    def __init__(self, data: BenchmarkData, options: Options) -> None:
        self._data = data
        self._options = options
        self._scorer = Scorer(create_subjects(options.titles))

    @cached_property
    def card(self) -> EnvironmentCard:
        """Name, limits and a digest over source, products, goals, libraries and step limit."""
        goals = {split.value: [repr(goal) for goal in goals] for split, goals in self._loop.items()}
        deciding = [self._catalogue.digest, goals, {name: metadata.version(name) for name in DECIDING}]
        return EnvironmentCard(
            name=NAME,
            version=f"{self._scorer.version}; {len(self._catalogue.products):,} products",
            step_limit=self._options.step_limit,
            pass_mark=PASS_MARK,
            description="WebShop: find the product that an instruction describes, choose its options, buy it",
            digest=digest_of(
                [source_digest(Path(__file__).parent), self._scorer.version, self._options.step_limit, *deciding]
            ),
            is_blocking=True,  # a purchase may parse titles, and the first one loads the parser
        )

    def tasks(self, split: LoopSplit) -> Sequence[Task]:
        """List the training or guard tasks.

        Raises:
            SealError: anything else was asked for.
        """
        require_loop_split(NAME, split)
        return [goal.task(split) for goal in self._offered(split)]

    def heldout_tasks(self, look: Look) -> Sequence[Task]:
        """List the held-out tasks against a recorded look.

        Raises:
            SealError: the look is not for this environment.
            ConfigError: the held-out goals are not here.
        """
        require_look(NAME, look)
        return [goal.task(Split.HELDOUT) for goal in self._offered(Split.HELDOUT)]

    def heldout_digest(self) -> str | None:
        """Return the SHA-256 of the held-out goals on offer; None where they are not here."""
        has_goals = self._data.has(HELDOUT) if self._options.goals is None else self._options.heldout_goals is not None
        if not has_goals:
            return None
        return digest_of([repr(goal) for goal in self._offered(Split.HELDOUT)])

    def open(self, task: Task, trial: int) -> ShoppingSession:
        """Open a session; all trials of a task are alike, since nothing here is random.

        Raises:
            UserError: the task is none of this environment's.
        """
        goal = self._by_id(task.split).get(task.task_id)
        if goal is None or goal.task(task.split) != task:
            raise UserError(f"{task.task_id} is no task of {NAME} under its present options")
        return ShoppingSession(goal, self._catalogue, self._scorer)

    def _offered(self, split: Split) -> Sequence[Goal]:
        goals = self._heldout if split is Split.HELDOUT else self._loop[split]
        return goals[: self._options.limits.get(split, len(goals))]

    def _by_id(self, split: Split) -> Mapping[str, Goal]:
        return {goal.task(split).task_id: goal for goal in self._offered(split)}

    @cached_property
    def _catalogue(self) -> Catalogue:
        if self._options.products is not None:
            return Catalogue(_read(self._options.products), source=str(self._options.products))
        return Catalogue(self._data.read(PRODUCTS), source=str(self._data.folder / PRODUCTS))

    @cached_property
    def _loop(self) -> Mapping[Split, Sequence[Goal]]:
        return divide(self._goals(self._options.goals, GOALS))

    @cached_property
    def _heldout(self) -> Sequence[Goal]:
        if self._options.goals is not None and self._options.heldout_goals is None:
            raise ConfigError(f"{NAME}: there are no held-out goals of these products; option heldout_goals names them")
        goals = self._goals(self._options.heldout_goals, HELDOUT)
        return [goal for goal in goals if goal.index < HELDOUT_END]

    def _goals(self, chosen: Path | None, pinned: str) -> tuple[Goal, ...]:
        if chosen is not None:
            return read_goals(_read(chosen), source=str(chosen))
        return read_goals(self._data.read(pinned), source=str(self._data.folder / pinned))


def create(options: Mapping[str, object]) -> WebShop:
    """Make the environment; docs/environments/webshop.md describes the options.

    Raises:
        ConfigError: an option is wrong, the extra is not installed, or the data is not there.
    """
    chosen = read_options(options)
    data = BenchmarkData(BENCHMARK, options.get("data"))
    for path in () if chosen.products is not None else (PRODUCTS, GOALS):
        if not data.has(path):
            raise ConfigError(data.missing(path))
    for module in BENCHMARK.modules:
        need_module(module, extra=EXTRA)
    return WebShop(data, chosen)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{NAME}: {path} does not read: {error.strerror}") from error
