"""The house while somebody acts in it: its state and its rules.

`moves` is the one place where the rules stand: an action is possible exactly when it is in that table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from evolve.environments.household.vocabulary import LAMPS, OPENABLE, TREATABLE, TREATMENTS, kind_of

Move = Callable[[], str]


@dataclass(frozen=True, slots=True)
class World:
    """Where everything is at the start: the objects and lamps of each receptacle, by numbered name."""

    inside: Mapping[str, tuple[str, ...]]


class House:
    """A world being acted on. Containers start closed, hands empty, nobody at any receptacle."""

    def __init__(self, world: World) -> None:
        self.inside = {place: list(objects) for place, objects in world.inside.items()}
        self.at: str | None = None
        self.held: str | None = None
        self.opened: set[str] = set()
        self.treated: set[tuple[str, str]] = set()
        self.examined: set[tuple[str, str]] = set()

    def moves(self) -> dict[str, Move]:
        """Return what can be done now: the action's exact words, and what doing it does."""
        moves: dict[str, Move] = {f"go to {place}": partial(self._go, place) for place in self.inside}
        if self.at is not None:
            del moves[f"go to {self.at}"]
            moves.update(self._moves_at(self.at))
        moves["look"] = self._look
        moves["inventory"] = self._inventory
        return moves

    def is_closed(self, place: str) -> bool:
        """Return whether the receptacle hides what is in it."""
        return kind_of(place) in OPENABLE and place not in self.opened

    def _moves_at(self, place: str) -> Iterator[tuple[str, Move]]:
        if self.held is not None:
            yield from self._treatments(place, self.held)
        if self.is_closed(place):
            yield f"open {place}", partial(self._open, place)
            return
        if place in self.opened:
            yield f"close {place}", partial(self._close, place)
        if self.held is not None:
            yield f"put {self.held} in {place}", partial(self._put, self.held, place)
        for thing in self.inside[place]:
            if kind_of(thing) in LAMPS:
                yield f"use {thing}", partial(self._use, thing)
            elif self.held is None:
                yield f"take {thing} from {place}", partial(self._take, thing, place)

    def _treatments(self, place: str, obj: str) -> Iterator[tuple[str, Move]]:
        appliance = kind_of(place)
        if kind_of(obj) in TREATABLE.get(appliance, ()):
            verb = TREATMENTS[appliance]
            yield f"{verb} {obj} with {place}", partial(self._treat, verb, obj, place)

    def _go(self, place: str) -> str:
        self.at = place
        return self._look()

    def _look(self) -> str:
        if self.at is None:
            return "You are in the middle of the room."
        if self.is_closed(self.at):
            return f"You are at {self.at}. It is closed."
        return f"You are at {self.at}. {self._seen(self.at)}"

    def _inventory(self) -> str:
        return f"You hold {self.held or 'nothing'}."

    def _open(self, place: str) -> str:
        self.opened.add(place)
        return f"You open {place}. {self._seen(place)}"

    def _close(self, place: str) -> str:
        self.opened.discard(place)
        return f"You close {place}."

    def _take(self, obj: str, place: str) -> str:
        self.inside[place].remove(obj)
        self.held = obj
        return f"You take {obj} from {place}."

    def _put(self, obj: str, place: str) -> str:
        self.inside[place].append(obj)
        self.held = None
        return f"You put {obj} in {place}."

    def _treat(self, verb: str, obj: str, place: str) -> str:
        undone = {"heat": "cool", "cool": "heat"}.get(verb, verb)
        self.treated.discard((obj, undone))
        self.treated.add((obj, verb))
        return f"You {verb} {obj} with {place}."

    def _use(self, lamp: str) -> str:
        if self.held is not None:
            self.examined.add((self.held, lamp))
        return f"You turn on {lamp}."

    def _seen(self, place: str) -> str:
        return f"You see {', '.join(self.inside[place]) or 'nothing'}."
