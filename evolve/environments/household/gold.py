"""The gold solver: plans with full sight of the hidden world. For tests and baselines, never for an agent."""

from __future__ import annotations

from evolve.environments.household.goals import Goal, GoalKind
from evolve.environments.household.house import House
from evolve.environments.household.problems import Problem
from evolve.environments.household.vocabulary import kind_of


def solve(problem: Problem) -> list[str]:
    """Return the actions that reach the problem's goal, in order."""
    plan = _Plan(House(problem.world))
    goal = problem.goal
    for obj in plan.things(goal.obj):
        plan.fetch(obj)
        _use_on(plan, goal, obj)
    return plan.actions


def _use_on(plan: _Plan, goal: Goal, obj: str) -> None:
    """Do what the goal asks for with the object in hand."""
    if goal.kind is GoalKind.EXAMINE:
        [lamp] = plan.things(goal.place)
        plan.go(plan.where(lamp))
        plan.do(f"use {lamp}")
        return
    if goal.kind.appliance:
        appliance = plan.receptacle(goal.kind.appliance)
        plan.go(appliance)
        plan.do(f"{goal.kind} {obj} with {appliance}")
    target = plan.receptacle(goal.place)
    plan.reach_into(target)
    plan.do(f"put {obj} in {target}")


class _Plan:
    """Actions so far, tried out in a house so that a wrong plan fails here."""

    def __init__(self, house: House) -> None:
        self._house = house
        self.actions: list[str] = []

    def do(self, action: str) -> None:
        self._house.moves()[action]()
        self.actions.append(action)

    def go(self, place: str) -> None:
        if self._house.at != place:
            self.do(f"go to {place}")

    def reach_into(self, place: str) -> None:
        self.go(place)
        if self._house.is_closed(place):
            self.do(f"open {place}")

    def fetch(self, obj: str) -> None:
        place = self.where(obj)
        self.reach_into(place)
        self.do(f"take {obj} from {place}")

    def where(self, thing: str) -> str:
        return next(place for place, things in self._house.inside.items() if thing in things)

    def things(self, kind: str) -> list[str]:
        return [thing for things in self._house.inside.values() for thing in things if kind_of(thing) == kind]

    def receptacle(self, kind: str) -> str:
        return next(place for place in self._house.inside if kind_of(place) == kind)
