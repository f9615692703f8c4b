"""Decides what becomes of a story's effects: where it is killed, and from where on the disk is full."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable

from transitions import transition_of
from watched import Effect, Fate

GROWING = {"write", "create", "mkdir", "link", "symlink"}
"""What needs room on the disk; removing, renaming and syncing do not."""

Point = tuple[str, str]
"""The name of a transition, and the kind of call in it."""


def point_of(effect: Effect) -> Point:
    """Return where in the list an effect belongs.

    Raises:
        LookupError: the list does not have it.
    """
    transition = transition_of(effect)
    if transition is None:
        raise LookupError(f"no transition of the list fits {effect}")
    return transition.name, effect.op


def central_points(effects: Iterable[Effect], allowed: Callable[[Effect], bool] = lambda _: True) -> dict[str, Point]:
    """Return for each transition, in the order of the story, the kind of call in the middle of it."""
    points: dict[str, list[Point]] = {}
    for effect in filter(allowed, effects):
        points.setdefault(point_of(effect)[0], []).append(point_of(effect))
    return {name: found[len(found) // 2] for name, found in points.items()}


class KillOnce:
    """Kills at the first effect of one of the points, in the middle of it where it is a write."""

    def __init__(self, points: Iterable[Point], fate: Fate = "kill") -> None:
        self.left = list(points)
        self._fate = fate

    def __call__(self, effect: Effect) -> Fate:
        point = point_of(effect)
        if point not in self.left:
            return "go on"
        self.left.remove(point)
        return "tear" if effect.op == "write" and self._fate == "kill" else self._fate


class KillAt:
    """Kills at the effect of one number, counted from 0."""

    def __init__(self, number: int, fate: Fate = "kill") -> None:
        self._left = number
        self._fate = fate

    def __call__(self, _: Effect) -> Fate:
        self._left -= 1
        return self._fate if self._left == -1 else "go on"


class FullDisk:
    """Lets the disk be full from the first effect of one of the points on, until the process ends."""

    def __init__(self, points: Iterable[Point]) -> None:
        self.left = list(points)
        self.is_full = False

    def __call__(self, effect: Effect) -> Fate:
        if not self.is_full and point_of(effect) in self.left:
            self.left.remove(point_of(effect))
            self.is_full = True
        return errno.ENOSPC if self.is_full and effect.op in GROWING else "go on"

    def has_room(self) -> None:
        """Free some space."""
        self.is_full = False
