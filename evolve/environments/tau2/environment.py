"""The environments: card, task lists, the seal on the official test side, and how a session is opened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from evolve.environments.seal import require_look, require_loop_split
from evolve.environments.source import source_digest
from evolve.environments.tau2 import words
from evolve.environments.tau2.benchmark import PINNED
from evolve.environments.tau2.judge import Judge
from evolve.environments.tau2.options import Limits, Options, read_options
from evolve.environments.tau2.players import Players
from evolve.environments.tau2.scoring import PASS_MARK, Scorer, is_judged
from evolve.environments.tau2.session import DONE_TOOL, Setting, Tau2Session
from evolve.environments.tau2.side_model import SideModel
from evolve.environments.tau2.source import Source, family_of
from evolve.environments.tau2.upstream import Desks, check_installed
from evolve.environments.tau2.world import World, tools_of
from evolve.errors import ConfigError, SealError, UserError
from evolve.protocols import EnvironmentCard
from evolve.records import Json, Look, LoopSplit, Split, Task, Tool, digest_of

DESCRIPTIONS = {
    "airline": "Bookings, changes and refunds of flights under the airline's policy",
    "retail": "Orders, returns and exchanges of a shop under its policy",
    "telecom": "Phone plans and broken phones under a phone company's policy",
}


@dataclass(frozen=True, slots=True)
class Case:
    """A task as it is offered, and as the benchmark has it."""

    task: Task
    official: Json


class Tau2:
    """One domain of τ²-bench.

    Args:
        source: its files.
        options: as the configuration gives them.
        package: name and version of the installed package, which runs the tools.

    Raises:
        ConfigError: a file is missing, or a judge is needed and none is named.
    """

    def __init__(self, source: Source, options: Options, package: str) -> None:
        self.domain = source.domain
        self.name = f"tau2_{source.domain}"
        self._source = source
        self._options = options
        self._package = package
        self._desks = Desks(source)
        self._players = Players(self.name, source, options, self._desks)
        self._scorers: dict[str, Scorer] = {}
        self._refuse_unjudged()

    @cached_property
    def card(self) -> EnvironmentCard:
        """Name, limits and a digest over code, data, package, customer, judge and limits of an episode."""
        ending = [self._limits.max_steps, self._limits.max_errors]
        decisive = [
            source_digest(Path(__file__).parent),
            PINNED,
            self._source.training_digest,
            self.version,
            self._players.deciding,
            ending,
        ]
        return EnvironmentCard(
            name=self.name,
            version=self.version,
            step_limit=self._limits.agent_steps,
            pass_mark=PASS_MARK,
            description=DESCRIPTIONS[self.domain],
            digest=digest_of(decisive),
            is_blocking=bool(self.side_models),
        )

    @cached_property
    def version(self) -> str:
        """Texts, package and who plays the customer; ends with what is left out of the score."""
        told = f"tau2 texts {self._source.texts}, {self._package}, {self._players.customer}"
        return f"{told}, without NL_ASSERTION" if self._is_unjudged else told

    @property
    def side_models(self) -> tuple[SideModel, ...]:
        """The models that play the customer and judge; each counts what it used."""
        return self._players.models

    def tasks(self, split: LoopSplit) -> Sequence[Task]:
        """List the training or guard tasks.

        Raises:
            SealError: anything else was asked for.
        """
        require_loop_split(self.name, split)
        return [case.task for case in self._offered(split)]

    def heldout_tasks(self, look: Look) -> Sequence[Task]:
        """List the official test tasks against a recorded look.

        Raises:
            SealError: the look is not for this environment.
            ConfigError: the tasks are not here.
        """
        require_look(self.name, look)
        return [case.task for case in self._offered(Split.HELDOUT)]

    def heldout_digest(self) -> str | None:
        """Return the SHA-256 of the official test tasks on offer; None where they are not here."""
        if not self._source.has_heldout():
            return None
        return digest_of([[case.task.model_dump(mode="json"), case.official] for case in self._offered(Split.HELDOUT)])

    def open(self, task: Task, trial: int) -> Tau2Session:
        """Open a session. Trials differ only where a sampled model plays the customer.

        Raises:
            UserError: the task is none of this environment's.
            ProviderError: the model that plays the customer cannot be asked.
        """
        case = (self._heldout if task.split is Split.HELDOUT else self._loop).get(task.task_id)
        if case is None or case.task != task:
            raise UserError(f"{task.task_id} is no task of {self.name} under its present options")
        return Tau2Session(
            self._setting,
            World(self._desks.make(is_solo=self._players.is_solo), case.official),
            task.text,
            user=self._players.user_of(case.official, stream=f"{task.task_id}/{trial}"),
            scorer=self._scorer(case),
        )

    def official(self, task: Task) -> Json:
        """Return a training or guard task as the benchmark has it, gold among it. For checks of the adapter alone.

        Raises:
            SealError: the task is neither.
        """
        if task.task_id not in self._loop:
            raise SealError(f"{self.name}: {task.task_id} is no training or guard task on offer")
        return self._loop[task.task_id].official

    def close(self) -> None:
        """Close the models that play the customer and judge, where there are any."""
        for model in self.side_models:
            model.close()

    def _offered(self, split: Split) -> list[Case]:
        official = self._source.of_split(split)
        cases = [Case(self._task(name, task, split), task) for name, task in official.items()]
        return cases[: self._options.limit(split)]

    def _task(self, name: str, official: Json, split: Split) -> Task:
        task_id = name if name.startswith("[") else f"{self.domain}-{name}"
        family = family_of(self.domain, name)
        return Task(task_id=task_id, environment=self.name, split=split, family=family, text=self._text(official))

    def _text(self, official: Json) -> str:
        if self._players.has_user:
            return words.reason_for_call(official)
        return str(official["ticket"]) if self._players.is_solo else words.scenario_text(official)

    @cached_property
    def _loop(self) -> dict[str, Case]:
        return {case.task.task_id: case for split in (Split.TRAIN, Split.GUARD) for case in self._offered(split)}

    @cached_property
    def _heldout(self) -> dict[str, Case]:
        return {case.task.task_id: case for case in self._offered(Split.HELDOUT)}

    @cached_property
    def _setting(self) -> Setting:
        instruction = words.agent_instruction(has_user=self._players.has_user, is_solo=self._players.is_solo)
        system = words.agent_system(instruction, self._desks.policy(is_solo=self._players.is_solo))
        return Setting(system, self._tools, self._players.is_solo, self._limits)

    @cached_property
    def _tools(self) -> tuple[Tool, ...]:
        offered = tools_of(self._desks.make(is_solo=self._players.is_solo), with_phone=self._players.is_solo)
        return tuple(offered if self._players.has_user else [*offered, _DONE])

    @cached_property
    def _limits(self) -> Limits:
        return Limits(self._options.max_steps, self._options.max_errors)

    def _scorer(self, case: Case) -> Scorer:
        """Return the scorer of a task, which keeps the gold state."""
        if case.task.task_id not in self._scorers:
            self._scorers[case.task.task_id] = Scorer(
                case.official,
                lambda: World(self._desks.make(), case.official),
                version=self.version,
                judge=None if self._players.judge is None else Judge(self._players.judge),
            )
        return self._scorers[case.task.task_id]

    @property
    def _is_unjudged(self) -> bool:
        return self._options.judge == "none" and any(is_judged(task) for task in self._source.training.values())

    def _refuse_unjudged(self) -> None:
        judged = [name for name, task in self._source.training.items() if is_judged(task)]
        if judged and self._options.judge is None:
            raise ConfigError(
                f"{self.name}: with texts {self._source.texts}, {len(judged)} of its training tasks are scored by a "
                'judge. Name a model in option judge, set judge = "none" to score the other parts only '
                '(Score.version says so), or take the texts that need none: texts = "v0.2.0"'
            )


def create(domain: str, given: Mapping[str, object]) -> Tau2:
    """Make the environment of a domain.

    Raises:
        ConfigError: an option is wrong, the extra or the data is missing, or a judge is needed and none is named.
    """
    options = read_options(f"tau2_{domain}", given)
    package = check_installed()
    return Tau2(Source(domain, options.data, options.texts), options, package)


_DONE = Tool(
    name=DONE_TOOL,
    description=words.DONE,
    parameters={"type": "object", "properties": {}, "title": "parameters"},
)
