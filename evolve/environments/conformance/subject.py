"""What is examined: an environment, a way to make it anew, and a few of its training tasks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice

from evolve.protocols import Environment, Session
from evolve.records import Split, Task


@dataclass(frozen=True)
class Subject:
    """What is checked: a way to make the environment anew, one made already, and a few of its training tasks."""

    name: str
    make: Callable[[], Environment]
    made: Environment
    tasks: Sequence[Task]

    def open(self, task: Task) -> Session:
        """Open a session, trial 0."""
        return self.made.open(task, 0)


def subject_of(name: str, make: Callable[[], Environment], *, tasks: int = 3) -> Subject:
    """Return what the checks look at: up to `tasks` training tasks, spread over the list."""
    made = make()
    listed = made.tasks(Split.TRAIN)
    stride = max(1, len(listed) // tasks)
    return Subject(name, make, made, list(islice(listed[::stride], tasks)))
