"""The six kinds of goals: the sentence that tells one, and when it holds. Judges a house, never changes it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from evolve.environments.household.house import House
from evolve.environments.household.vocabulary import SURFACES, TREATMENTS, article, kind_of, plural


class GoalKind(StrEnum):
    """What is asked for. `clean`, `heat` and `cool` are also the verbs that do it."""

    PLACE = "place"
    CLEAN = "clean"
    HEAT = "heat"
    COOL = "cool"
    EXAMINE = "examine"
    TWO = "two"

    @property
    def appliance(self) -> str | None:
        """The kind of appliance that the goal needs, or None."""
        return next((appliance for appliance, verb in TREATMENTS.items() if verb == self), None)


@dataclass(frozen=True, slots=True)
class Goal:
    """A goal over kinds: any object of the kind `obj` and any receptacle or lamp of the kind `place` will do."""

    kind: GoalKind
    obj: str
    place: str

    @property
    def sentence(self) -> str:
        """The goal as the agent is told it."""
        if self.kind is GoalKind.EXAMINE:
            return f"Examine {article(self.obj)} under {article(self.place)}."
        preposition = "on" if self.place in SURFACES else "in"
        return f"Put {self._what} {preposition} {article(self.place)}."

    @property
    def _what(self) -> str:
        if self.kind is GoalKind.TWO:
            return f"two {plural(self.obj)}"
        adjective = {GoalKind.CLEAN: "clean ", GoalKind.HEAT: "hot ", GoalKind.COOL: "cool "}.get(self.kind, "")
        return article(adjective + self.obj)

    def is_reached(self, house: House) -> bool:
        """Return whether the goal holds in the house as it is now."""
        if self.kind is GoalKind.EXAMINE:
            return any(kind_of(obj) == self.obj and kind_of(lamp) == self.place for obj, lamp in house.examined)
        return self._most_in_place(house) >= (2 if self.kind is GoalKind.TWO else 1)

    def parts(self, house: House) -> dict[str, float]:
        """Return the goal and its sub-goals, 1.0 where one holds now. Only `reached` counts for the score."""
        parts = {"reached": float(self.is_reached(house))}
        if self.kind is GoalKind.EXAMINE:
            parts["held"] = float(house.held is not None and kind_of(house.held) == self.obj)
        if self.kind is GoalKind.TWO:
            parts["one_placed"] = float(self._most_in_place(house) >= 1)
        if self.kind.appliance:
            parts["treated"] = float(any(kind_of(obj) == self.obj and verb == self.kind for obj, verb in house.treated))
        return parts

    def _most_in_place(self, house: House) -> int:
        """Return how many fitting objects the best filled receptacle of the goal's kind holds."""
        fitting = (
            sum(self._fits(house, thing) for thing in things)
            for place, things in house.inside.items()
            if kind_of(place) == self.place
        )
        return max(fitting, default=0)

    def _fits(self, house: House, thing: str) -> bool:
        is_treated = self.kind.appliance is None or (thing, self.kind.value) in house.treated
        return kind_of(thing) == self.obj and is_treated
