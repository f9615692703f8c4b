"""What lies behind a task: its database, its gold, and how a split's cases are put in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evolve.environments.service_desk.desk import Desk
from evolve.records import Call, Json, Split, Task

NAME = "service_desk"


@dataclass(frozen=True, slots=True)
class Gold:
    """The right end of a ticket: the calls before the closing one, its resolution, what its statement names.

    Where the policy forbids what is asked, `attempt` is the call that it refuses, and `code` its reason: the
    statement then names the code and the reference that came with it.
    """

    calls: tuple[Call, ...]
    resolution: str
    must_name: tuple[str, ...]
    code: str = ""
    attempt: Call | None = None
    mark: str = ""


@dataclass(frozen=True, slots=True)
class Draft:
    """A ticket as its family wrote it: text, the sender's customer id, database, gold."""

    family: str
    text: str
    sender: str
    desk: Desk
    gold: Gold


@dataclass(frozen=True, slots=True)
class Case:
    """A task with what the agent must not see."""

    task: Task
    draft: Draft

    def content(self) -> Json:
        """All of it, for digests."""
        return {"task": self.task.model_dump(mode="json"), "draft": _plain(self.draft)}


def _plain(draft: Draft) -> Json:
    gold = draft.gold
    calls = [call.model_dump(mode="json") for call in (*gold.calls, *filter(None, [gold.attempt]))]
    end = {"resolution": gold.resolution, "must_name": list(gold.must_name), "code": gold.code, "mark": gold.mark}
    return {"sender": draft.sender, "desk": draft.desk, "calls": calls, "gold": end}


def number(split: Split, drafts: Sequence[Draft]) -> tuple[Case, ...]:
    """Give the drafts of a split their task ids, in order, from 0001."""
    return tuple(
        Case(
            Task(
                task_id=f"{NAME}-{split.value}-{position:04d}",
                environment=NAME,
                split=split,
                family=draft.family,
                text=draft.text,
            ),
            draft,
        )
        for position, draft in enumerate(drafts, start=1)
    )
