"""Counts, unit by unit, what became of the training episodes in which it fired. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from evolve.records import Episode, Layer, Strength
from evolve.report.document import UnitLine


class _Played(NamedTuple):
    """What is kept of an episode once its trace was read."""

    harness: str
    task_id: str
    trial: int
    is_success: bool


@dataclass
class _Tally:
    layer: Layer
    strength: Strength
    firings: int = 0
    fired: dict[str, _Played] = field(default_factory=dict)


class _Counts:
    """What remains of the episodes after one pass: tallies of the units, and what each harness made of each trial."""

    def __init__(self, episodes: Iterable[Episode], rivals: Mapping[str, str]) -> None:
        self._rivals = rivals
        self._seen: set[str] = set()
        self._scored: dict[tuple[str, str, int], bool] = {}
        self._fired: dict[str, set[str]] = defaultdict(set)
        self.tallies: dict[str, _Tally] = {}
        self.faults: Counter[str] = Counter()
        for episode in episodes:
            if episode.episode_id not in self._seen:
                self._take(episode)

    def outcome(self, played: _Played, unit: str) -> bool | None:
        """Return whether the harness that this one was measured against succeeded there.

        None where that was not measured, or has the unit itself.
        """
        rival = self._rivals.get(played.harness)
        if rival is None or unit in self._fired[rival]:
            return None
        return self._scored.get((rival, played.task_id, played.trial))

    def _take(self, episode: Episode) -> None:
        played = _Played(episode.harness, episode.task_id, episode.trial, episode.is_success)
        self._seen.add(episode.episode_id)
        if episode.score is not None:
            self._scored[played[:3]] = played.is_success
        self.faults.update({fault.unit for fault in episode.faults})
        for firing in episode.firings:
            self._fired[played.harness].add(firing.unit)
            tally = self.tallies.setdefault(firing.unit, _Tally(firing.layer, firing.strength))
            tally.strength = max(tally.strength, firing.strength, key=lambda strength: strength.rank)
            tally.firings += 1
            tally.fired[episode.episode_id] = played


def unit_lines(episodes: Iterable[Episode], rivals: Mapping[str, str]) -> tuple[UnitLine, ...]:
    """Return a line for each unit that fired, by layer and id.

    Args:
        episodes: scored training episodes; one that is given twice counts once.
        rivals: for the digest of a candidate's active harness, that of the incumbent it was measured against.
    """
    counts = _Counts(episodes, rivals)
    lines = [_line(unit, tally, counts) for unit, tally in counts.tallies.items()]
    return tuple(sorted(lines, key=lambda line: (list(Layer).index(line.layer), line.unit)))


def _line(unit: str, tally: _Tally, counts: _Counts) -> UnitLine:
    outcomes = [(played.is_success, counts.outcome(played, unit)) for played in tally.fired.values()]
    return UnitLine(
        unit=unit,
        layer=tally.layer,
        strength=tally.strength,
        firings=tally.firings,
        episodes=len(outcomes),
        successes=sum(new for new, _ in outcomes),
        helped=sum(new and old is False for new, old in outcomes),
        hurt=sum(not new and old is True for new, old in outcomes),
        faults=counts.faults[unit],
    )
