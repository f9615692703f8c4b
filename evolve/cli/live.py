"""Draws a run while it goes on, on standard error: one moving line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic

from evolve.cli.output import say, visible
from evolve.figures import count, money, points
from evolve.progress import Event, Finished, Judged, Progress, Said, Staged, Started
from evolve.records import Usage
from evolve.store import Purpose

LINE_EVERY_S = 10.0


@dataclass
class Tally:
    """What was seen so far of the batch under way, and of the whole run."""

    purpose: str = "starting"
    wanted: int = 0
    reused: int = 0
    finished: int = 0
    successes: int = 0
    errors: int = 0
    steps: int = 0
    usage: Usage = Usage()
    began: float = field(default_factory=monotonic)

    def take(self, event: Started | Finished) -> None:
        """Count one event."""
        if isinstance(event, Started):
            self.purpose, self.wanted, self.reused = str(event.purpose), event.wanted, event.reused
            self.finished = self.successes = self.errors = 0
            return
        self.finished += 1
        self.successes += event.episode.is_success
        self.errors += event.episode.status == "error"
        self.steps += len(event.episode.steps)
        self.usage += event.episode.usage

    @property
    def is_complete(self) -> bool:
        """True where the batch has all its episodes."""
        return self.finished + self.reused >= self.wanted

    def __str__(self) -> str:
        if not self.wanted:
            return f"{self.purpose} · {monotonic() - self.began:.0f} s"
        tokens = self.usage.prompt_tokens + self.usage.completion_tokens
        on_record = f", {self.reused} of them on record" if self.reused else ""
        parts = [
            f"{self.purpose} {self.finished + self.reused}/{self.wanted} episodes{on_record}",
            *self._solved(),
            count(self.steps, "step"),
            count(tokens, "token"),
        ]
        if self.usage.cost_usd is not None:
            parts.append(money(self.usage.cost_usd))
        if self.errors:
            parts.append(count(self.errors, "error"))
        return " · ".join([*parts, f"{monotonic() - self.began:.0f} s"])

    def _solved(self) -> list[str]:
        """Say what the episodes that were played now and have a score came to; all but a baseline play two arms."""
        scored = self.finished - self.errors
        if not scored:
            return []
        of = f"the {scored} played now" if self.reused else str(scored)
        arms = "" if self.purpose == Purpose.BASELINE else ", both arms together"
        return [f"{self.successes} of {of} solved{arms}"]


def line_of(event: Staged | Judged | Said) -> str:
    """Return an event as one line."""
    if isinstance(event, Said):
        return f"warning: {event.text}" if event.level == "warning" else event.text
    if isinstance(event, Staged):
        reason = f": {event.result.reasons[0]}" if event.result.reasons else ""
        return f"gate {event.candidate_id} {event.result.stage} {event.result.outcome}{reason}"
    verdict = event.verdict
    came_to = "no paired test" if verdict.effect is None else f"gain {points(verdict.effect)} points per task"
    return f"verdict {event.candidate_id} {verdict.decision.value}, {came_to}"


class Lines:
    """Plain lines: what was decided at once, how far a batch is every few seconds and at its end."""

    def __init__(self) -> None:
        self._tally = Tally()
        self._said_at = monotonic()

    def report(self, event: Event) -> None:
        """Write a line where it is time for one."""
        if not isinstance(event, Started | Finished):
            say(line_of(event))
            return
        self._tally.take(event)
        is_due = monotonic() - self._said_at >= LINE_EVERY_S
        if isinstance(event, Finished) and (is_due or self._tally.is_complete):
            say(str(self._tally))
            self._said_at = monotonic()


@contextmanager
def live_progress() -> Iterator[Progress]:
    """Give what draws progress while the block lasts."""
    if not sys.stderr.isatty():
        yield Lines()
        return
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    tally = Tally()
    console = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)

    def moving_line() -> Text:
        return Text(str(tally), style="cyan", no_wrap=True, overflow="ellipsis")

    class Drawn:
        def report(self, event: Event) -> None:
            if isinstance(event, Started | Finished):
                tally.take(event)
            else:
                console.print(visible(line_of(event)))

    with Live(get_renderable=moving_line, console=console, refresh_per_second=4, transient=True):
        yield Drawn()
