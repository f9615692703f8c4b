"""The ruler: all that a run measures with, as one manifest, so that a change of it is seen before anything is scored.

It is measured when a run begins, kept with the run, and measured anew wherever a score is about to count.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from evolve import __version__
from evolve.dotted import flatten
from evolve.errors import RulerChanged
from evolve.protocols import Environment
from evolve.records import Json, ModelFingerprint, Record, Split, Task, digest_of
from evolve.rules import API_VERSION

_IN_WORDS = {
    "environment_digest": "the code, the data or the scorer of the environment",
    "train.digest": "the training tasks",
    "guard.digest": "the guard tasks",
    "heldout": "the held-out tasks",
    "evolve": "the version of evolve",
    "rule_api": "the version of the rule API",
}


class TaskSet(Record):
    """Which tasks a split lists, without naming one."""

    count: int
    digest: str = Field(description="SHA-256 over the ids in their order")


class Ruler(Record):
    """What two scores must have in common to be comparable."""

    schema_version: Literal[1] = 1
    environment: str
    environment_version: str
    environment_digest: str = Field(description="of the environment's code, data, tasks and scorer")
    pass_mark: float
    step_limit: int
    train: TaskSet
    guard: TaskSet
    heldout: str | None = Field(description="the commitment to the held-out split; None where its data is not here")
    model: ModelFingerprint = Field(description="the source model with its sampling")
    harness: Json = Field(description="what a harness may do: the configuration's section of that name")
    gate: Json = Field(description="how candidates are tested: the configuration's section of that name")
    rule_api: int
    evolve: str = Field(description="version of the package")

    @property
    def digest(self) -> str:
        """SHA-256 of all fields; it stands in the trailer of each commit that was measured with this."""
        return digest_of(self.model_dump(mode="json"))


def measure(environment: Environment, *, model: ModelFingerprint, harness: Json, gate: Json) -> Ruler:
    """Return the ruler as it is now.

    Args:
        environment: made just now: one made earlier may hold digests of what lay on the disk then.
        harness: the section of the configuration, as JSON.
        gate: the section of the configuration, as JSON.
    """
    card = environment.card
    return Ruler(
        environment=card.name,
        environment_version=card.version,
        environment_digest=card.digest,
        pass_mark=card.pass_mark,
        step_limit=card.step_limit,
        train=_listed(environment.tasks(Split.TRAIN)),
        guard=_listed(environment.tasks(Split.GUARD)),
        heldout=environment.heldout_digest(),
        model=model,
        harness=harness,
        gate=gate,
        rule_api=API_VERSION,
        evolve=__version__,
    )


def require_unchanged(run_id: str, then: Ruler, now: Ruler) -> None:
    """Do nothing where the ruler of a run is what it was at its start.

    Raises:
        RulerChanged: it is not; the message names each part that changed.
    """
    changed = changes(then, now)
    if changed:
        raise RulerChanged(
            f"run {run_id} no longer measures what it began with: {'; '.join(changed)} changed. Nothing more is scored "
            "or accepted in it; restore what changed and go on, or begin a new run"
        )


def changes(then: Ruler, now: Ruler) -> list[str]:
    """Return what differs between two rulers, each with both values."""
    before, after = (flatten(ruler.model_dump(mode="json")) for ruler in (then, now))
    names = sorted(before.keys() | after.keys())
    return [
        f"{_IN_WORDS.get(name, name)} (was {_short(before.get(name))}, is {_short(after.get(name))})"
        for name in names
        if before.get(name) != after.get(name)
    ]


def _listed(tasks: Sequence[Task]) -> TaskSet:
    return TaskSet(count=len(tasks), digest=digest_of([task.task_id for task in tasks]))


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:13]}…'" if text.startswith("'") else f"{text[:37]}…"
