"""Counts, unit by unit, what became of the training episodes in which it fired. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from evolve.records import Episode, Layer, Strength
from evolve.report.document import UnitLine


@dataclass
class _Tally:
    layer: Layer
    strength: Strength
    firings: int = 0
    fired: dict[str, Episode] = field(default_factory=dict)


class _Rivals:
    """What the harness that an episode's harness was measured against made of the same task and trial."""

    def __init__(self, episodes: Iterable[Episode], rivals: Mapping[str, str]) -> None:
        self._rivals = rivals
        self._scored: dict[tuple[str, str, int], bool] = {}
        self._fired: dict[str, set[str]] = defaultdict(set)
        for episode in episodes:
            self._fired[episode.harness] |= {firing.unit for firing in episode.firings}
            if episode.score is not None:
                self._scored[(episode.harness, episode.task_id, episode.trial)] = episode.is_success

    def outcome(self, episode: Episode, unit: str) -> bool | None:
        """Return whether the rival succeeded; None where it was not measured, or has the unit itself."""
        rival = self._rivals.get(episode.harness)
        if rival is None or unit in self._fired[rival]:
            return None
        return self._scored.get((rival, episode.task_id, episode.trial))


def unit_lines(episodes: Iterable[Episode], rivals: Mapping[str, str]) -> tuple[UnitLine, ...]:
    """Return a line for each unit that fired, by layer and id.

    Args:
        episodes: scored training episodes; one that is given twice counts once.
        rivals: for the digest of a candidate's active harness, that of the incumbent it was measured against.
    """
    once = list({episode.episode_id: episode for episode in episodes}.values())
    faults = Counter(unit for episode in once for unit in {fault.unit for fault in episode.faults})
    against = _Rivals(once, rivals)
    lines = [_line(unit, tally, against, faults[unit]) for unit, tally in _tallies(once).items()]
    return tuple(sorted(lines, key=lambda line: (list(Layer).index(line.layer), line.unit)))


def _tallies(episodes: Iterable[Episode]) -> dict[str, _Tally]:
    tallies: dict[str, _Tally] = {}
    for episode in episodes:
        for firing in episode.firings:
            tally = tallies.setdefault(firing.unit, _Tally(firing.layer, firing.strength))
            tally.strength = max(tally.strength, firing.strength, key=lambda strength: strength.rank)
            tally.firings += 1
            tally.fired[episode.episode_id] = episode
    return tallies


def _line(unit: str, tally: _Tally, against: _Rivals, faults: int) -> UnitLine:
    outcomes = [(episode.is_success, against.outcome(episode, unit)) for episode in tally.fired.values()]
    return UnitLine(
        unit=unit,
        layer=tally.layer,
        strength=tally.strength,
        firings=tally.firings,
        episodes=len(outcomes),
        successes=sum(new for new, _ in outcomes),
        helped=sum(new and old is False for new, old in outcomes),
        hurt=sum(not new and old is True for new, old in outcomes),
        faults=faults,
    )
