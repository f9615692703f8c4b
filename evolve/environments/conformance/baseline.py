"""What an agent scores that does nothing."""

from __future__ import annotations

from contextlib import closing

from pydantic import Field

from evolve.environments.conformance.subject import Subject
from evolve.records import Record


class Baseline(Record):
    """The score of an agent that does nothing, over the training tasks that were looked at."""

    tasks: int
    mean: float = Field(description="mean score, 0 to 1")
    successes: int


def do_nothing(subject: Subject) -> Baseline:
    """Score each task right after its opening."""
    scores = []
    for task in subject.tasks:
        with closing(subject.open(task)) as session:
            scores.append(session.score())
    mean = sum(score.value for score in scores) / len(scores)
    return Baseline(tasks=len(scores), mean=round(mean, 4), successes=sum(score.success for score in scores))
