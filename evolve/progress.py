"""What long work says while it runs. The command line draws it; nothing depends on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from evolve.records import Episode, StageResult, Usage, Verdict


@dataclass(frozen=True, slots=True)
class Started:
    """A batch of episodes begins: how many are wanted and how many of them were on record already."""

    purpose: str
    wanted: int
    reused: int


@dataclass(frozen=True, slots=True)
class Finished:
    """An episode ended."""

    purpose: str
    episode: Episode


@dataclass(frozen=True, slots=True)
class Staged:
    """A gate stage ended."""

    candidate_id: str
    result: StageResult


@dataclass(frozen=True, slots=True)
class Judged:
    """A candidate has its verdict."""

    candidate_id: str
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Said:
    """A line for people; `level` is how much it matters."""

    text: str
    level: Literal["info", "warning"] = "info"
    spent: Usage = Usage()


Event = Started | Finished | Staged | Judged | Said


class Progress(Protocol):
    """Receives events in order."""

    def report(self, event: Event) -> None:
        """Take note of one event; must not raise."""


class Silent:
    """Reports nothing."""

    def report(self, event: Event) -> None:
        """Ignore the event."""
