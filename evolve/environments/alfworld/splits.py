"""The rule that divides the official training side into `train` and `guard`, and the order in which tasks are listed.

Both follow from hashes of official names alone, so a task stays where it is whatever else is installed. Trials of
one kind (same chore, things and room) never stand on both sides: they are too much alike.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import zip_longest

from evolve.environments.alfworld.games import Game
from evolve.records import LoopSplit, Split, digest_of

GUARD_SHARE = 4
"""One kind in four is a guard."""


@dataclass(frozen=True, slots=True)
class LoopSide:
    """The games that the loop may use.

    Attributes:
        offered: the listed games of each split, by id, in order.
        digest: over all games of the official split, whatever is listed.
    """

    offered: Mapping[Split, Mapping[str, Game]]
    digest: str


def read_loop_side(games: Iterable[Game], limits: Mapping[LoopSplit, int | None]) -> LoopSide:
    """Divide an official split and keep the first so many games of each side."""
    everything = list(games)
    offered: dict[Split, Mapping[str, Game]] = {}
    for split, limit in limits.items():
        listed = in_rounds(game for game in everything if loop_split(game) is split)
        offered[split] = {game.game_id: game for game in listed[:limit]}
    return LoopSide(offered, digest_of_games(everything))


def digest_of_games(games: Iterable[Game]) -> str:
    """Return the SHA-256 over ids and contents, in the order of the ids; the form they were read from is no part."""
    return digest_of(sorted((game.game_id, game.sha256) for game in games))


def loop_split(game: Game) -> LoopSplit:
    """Return the side of a game of the official training side, by the hash of its kind."""
    return Split.GUARD if int(_hash(game.kind), 16) % GUARD_SHARE == 0 else Split.TRAIN


def in_rounds(games: Iterable[Game]) -> list[Game]:
    """Return games in rounds of all families, by the hash of their ids within one: any prefix is balanced."""
    by_family: defaultdict[str, list[Game]] = defaultdict(list)
    for game in sorted(games, key=lambda game: _hash(game.game_id)):
        by_family[game.family].append(game)
    rounds = zip_longest(*(by_family[family] for family in sorted(by_family)))
    return [game for each in rounds for game in each if game is not None]


def _hash(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()
