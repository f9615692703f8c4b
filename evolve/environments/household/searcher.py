"""A careful agent without a model: knows every rule, sees only what an agent sees, and searches place by place.

It shows that a task can be done within the step limit without being told where things are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from evolve.environments.household.vocabulary import OBJECTS, PLACES, kind_of, plural

_TREATMENTS = {"clean": ("clean", "sink"), "hot": ("heat", "microwave"), "cool": ("cool", "fridge")}
_SEEN = re.compile(r"You see (.*?)\.")


class Searcher:
    """Chooses one admissible action at a time for one task."""

    def __init__(self, task: str) -> None:
        words = re.findall(r"\w+", task.lower())
        self._obj = next(obj for obj in OBJECTS if obj in words or plural(obj) in words)
        self._target = next(place for place in PLACES if place in words)
        self._is_examine = "examine" in words
        self._verb, self._appliance = next((_TREATMENTS[word] for word in words if word in _TREATMENTS), ("", ""))
        self._at = ""
        self._held = ""
        self._is_treated = not self._verb
        self._seen: dict[str, list[str]] = {}

    def choose(self, text: str, admissible: Sequence[str]) -> str:
        """Return the next action.

        Args:
            text: the last observation.
            admissible: what can be done now; not empty.
        """
        self._remember(text)
        action = next(
            wish for pattern in self._wishes(admissible) for wish in admissible if re.fullmatch(pattern, wish)
        )
        self._expect(action)
        return action

    def _remember(self, text: str) -> None:
        if self._at:
            things = _SEEN.search(text)
            self._seen.setdefault(self._at, [])
            if things:
                self._seen[self._at] = things[1].split(", ")

    def _expect(self, action: str) -> None:
        if action.startswith("go to "):
            self._at = action.removeprefix("go to ")
        elif action.startswith("take "):
            self._held = action.removeprefix("take ").split(" from ")[0]
            self._seen[self._at].remove(self._held)
        elif action.startswith("put "):
            self._held = ""
        elif self._verb and action.startswith(self._verb):
            self._is_treated = True

    def _wishes(self, admissible: Sequence[str]) -> Iterator[str]:
        """Yield patterns of actions, the most wanted first."""
        if not self._held:
            yield from self._wishes_to_find(self._obj, rf"take {self._obj} \d+ from (?!{self._target}).*")
        elif not self._is_treated:
            yield rf"{self._verb} {self._held} with .*"
            yield rf"go to {self._appliance} \d+"
        elif self._is_examine:
            yield from self._wishes_to_find(self._target, rf"use {self._target} \d+")
        else:
            yield rf"put {self._held} in {self._target} \d+"
            yield rf"open {self._target} \d+"
            yield rf"go to {self._target} \d+"
        yield "look"

    def _wishes_to_find(self, kind: str, use: str) -> Iterator[str]:
        """Yield: use it here; open what is closed here; go where it was seen; go where nobody was."""
        yield use
        yield r"open .*"
        for place, things in self._seen.items():
            if kind_of(place) != self._target and any(kind_of(thing) == kind for thing in things):
                yield f"go to {place}"
        yield f"go to (?!{'|'.join(self._seen)}$).*" if self._seen else "go to .*"
