"""Make problems: a goal and a world that hides its objects, drawn from a seed and from the folds of one split."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass
from random import Random

from evolve.environments.household.goals import Goal, GoalKind
from evolve.environments.household.house import World
from evolve.environments.household.vocabulary import (
    CONTAINERS,
    LAMPS,
    OBJECTS,
    OPENABLE,
    SURFACES,
    TREATABLE,
    fold,
    kind_of,
)
from evolve.records import Json, Split, Task

NAME = "household"
ACCESSES = ("open", "closed")
SIZES = (4, 5)
MOST_CLOSED = 3  # filling stops adding closed receptacles here, so that a full search fits the step limit
CLUTTER = (3, 5)


@dataclass(frozen=True, slots=True)
class Problem:
    """A task together with what the agent is not told: the goal as a checkable thing, and the world."""

    task: Task
    goal: Goal
    world: World
    canary: str = ""

    def as_json(self) -> Json:
        """Return all of it, for digests."""
        return {
            "task": self.task.model_dump(mode="json"),
            "goal": asdict(self.goal),
            "inside": dict(self.world.inside),
            "canary": self.canary,
        }


def families() -> list[tuple[GoalKind, str]]:
    """Return the twelve families in the order in which tasks are dealt: any six in a row have all goal kinds.

    In a family with access `closed` the objects start in closed containers and, where the goal is to put
    them somewhere, that is a closed container too; with `open` nothing has to be opened.
    """
    kinds = list(GoalKind)
    return [(kind, ACCESSES[(row + half) % 2]) for half in range(2) for row, kind in enumerate(kinds)]


def make_problems(
    split: Split, *, folds: Collection[int], seed: int, count: int, canary: str = ""
) -> tuple[Problem, ...]:
    """Return `count` problems of a split, families in turn; no goal occurs twice.

    Args:
        split: what the tasks are marked with; part of their ids.
        folds: the folds of object-place pairs that goals are drawn from.
        seed: fixes goals and worlds.
        count: how many.
        canary: planted in the hidden part of each problem.
    """
    rng = Random(seed)  # noqa: S311 - seeded on purpose, nothing here is secret
    decks = {kind: _deck(kind, folds, rng) for kind in GoalKind}
    order = families()
    problems = []
    for number in range(count):
        kind, access = order[number % len(order)]
        goal = _draw(decks[kind], access)
        task = Task(
            task_id=f"{NAME}-{split}-{number:04d}",
            environment=NAME,
            split=split,
            family=f"{kind}-{access}",
            text=goal.sentence,
        )
        problems.append(Problem(task, goal, make_world(goal, access, rng), canary))
    return tuple(problems)


def _deck(kind: GoalKind, folds: Collection[int], rng: Random) -> list[Goal]:
    appliance = kind.appliance
    objects = TREATABLE[appliance] if appliance else OBJECTS
    places = LAMPS if kind is GoalKind.EXAMINE else SURFACES + CONTAINERS
    deck = [Goal(kind, obj, place) for obj in objects for place in places if fold(obj, place) in folds]
    rng.shuffle(deck)
    return deck


def _draw(deck: list[Goal], access: str) -> Goal:
    """Take the first goal from the deck that suits the access."""
    suiting = (CONTAINERS if access == "closed" else SURFACES) + LAMPS
    return deck.pop(next(index for index, goal in enumerate(deck) if goal.place in suiting))


def make_world(goal: Goal, access: str, rng: Random) -> World:
    """Return a world of 4 or 5 receptacles in which the goal does not hold and can be reached.

    The goal's objects lie in receptacles of the access's sort, apart from each other and away from the goal's
    place; there are just as many as the goal needs. One lamp stands in the open.
    """
    homes = [kind for kind in (CONTAINERS if access == "closed" else SURFACES) if kind != goal.place]
    sources = rng.sample(homes, 2)
    places = _numbered(_furnish(goal, sources, rng))
    inside: dict[str, list[str]] = {place: [] for place in sorted(places)}
    count = 2 if goal.kind is GoalKind.TWO else 1
    for source in sources[:count]:
        inside[_one_of(source, inside, rng)].append(goal.obj)
    surfaces = [place for place in inside if kind_of(place) in SURFACES]
    inside[rng.choice(surfaces)].append(goal.place if goal.kind is GoalKind.EXAMINE else rng.choice(LAMPS))
    _clutter(inside, goal.obj, rng)
    for things in inside.values():
        rng.shuffle(things)
    return World(_numbered_things(inside))


def _furnish(goal: Goal, sources: Sequence[str], rng: Random) -> list[str]:
    """Return the kinds of the world's receptacles: what the goal needs, and filling."""
    kinds = [*sources] if goal.kind is GoalKind.EXAMINE else [*sources, goal.place]
    needed = goal.kind.appliance
    kinds += [needed] if needed else []
    size = max(rng.choice(SIZES), len(kinds) + 1)  # one to fill, so that a surface is always there
    while len(kinds) < size:
        has_room = sum(kind in OPENABLE for kind in kinds) < MOST_CLOSED
        filling = SURFACES + CONTAINERS if has_room and any(kind in SURFACES for kind in kinds) else SURFACES
        kinds.append(rng.choice([kind for kind in filling if kind != goal.place]))
    return kinds


def _clutter(inside: dict[str, list[str]], obj: str, rng: Random) -> None:
    """Strew objects of other kinds over the receptacles, at most three things in each."""
    for kind in rng.choices([kind for kind in OBJECTS if kind != obj], k=rng.randint(*CLUTTER)):
        free = [place for place, things in inside.items() if len(things) < 3]
        inside[rng.choice(free)].append(kind)


def _one_of(kind: str, inside: dict[str, list[str]], rng: Random) -> str:
    return rng.choice([place for place in inside if kind_of(place) == kind])


def _numbered(kinds: Sequence[str]) -> Iterator[str]:
    seen: Counter[str] = Counter()
    for kind in kinds:
        seen[kind] += 1
        yield f"{kind} {seen[kind]}"


def _numbered_things(inside: dict[str, list[str]]) -> dict[str, tuple[str, ...]]:
    names = _numbered([thing for things in inside.values() for thing in things])
    return {place: tuple(next(names) for _ in things) for place, things in inside.items()}
