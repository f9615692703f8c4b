"""What the tests of the τ² adapters share: an environment of each domain over the real data, made once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from evolve.environments.tau2.environment import Tau2, create
from evolve.records import Call, Json, Observation, Split, Task

ALL_TEXTS: tuple[tuple[str, Json], ...] = (
    ("airline", {"texts": "v0.2.0"}),
    ("airline", {"texts": "1.0.1"}),
    ("retail", {"texts": "v0.2.0"}),
    ("retail", {"texts": "1.0.1", "judge": "none"}),
    ("telecom", {}),
)


class Desks:
    """Makes environments and keeps those that were made before with the same options."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._made: dict[str, Tau2] = {}

    def make(self, domain: str, **options: object) -> Tau2:
        key = f"{domain} {sorted(options.items())}"
        if key not in self._made:
            self._made[key] = create(domain, {"data": self.folder, **options})
        return self._made[key]


def training_tasks(environment: Tau2) -> list[Task]:
    """Return all official training tasks: those of train and of guard."""
    return [task for split in (Split.TRAIN, Split.GUARD) for task in environment.tasks(split)]


def play(environment: Tau2, task: Task, calls: Sequence[tuple[str, Json]]) -> list[Observation]:
    """Run calls on a fresh session and return the answers."""
    session = environment.open(task, 0)
    return [session.step(Call(tool=tool, arguments=arguments)) for tool, arguments in calls]
