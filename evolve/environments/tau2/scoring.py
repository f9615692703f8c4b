"""Scores an episode by upstream's rules: the product of the parts that a task names, each 0 or 1.

Only an episode that the agent or the customer ended is scored; any other is 0. The gold state of a task is computed
once. Everything is deterministic but NL_ASSERTION, which a judge decides where one is given.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

from evolve.environments.tau2.judge import Judge
from evolve.environments.tau2.world import State, World
from evolve.records import Call, Json, Score

PASS_MARK = 1.0
DEFAULT_BASIS = ("DB", "COMMUNICATE")
JUDGED = "NL_ASSERTION"


@dataclass(frozen=True, slots=True)
class Evidence:
    """What an episode left behind.

    Attributes:
        is_ended: the agent or the customer said so; a limit did not.
        calls: of the agent and of the customer, in order, errors among them.
        conversation: messages with role and content, as a judge reads them.
    """

    world: World
    is_ended: bool
    calls: Sequence[Call]
    conversation: list[Json]

    @property
    def said(self) -> list[str]:
        """What the agent told the customer."""
        return [message["content"] for message in self.conversation if message["role"] == "assistant"]


class Scorer:
    """Scores one task.

    Args:
        task: as the benchmark has it.
        make_world: gives a fresh world of the task, with a customer of its own where the domain has one.
        version: names scorer, package and texts.
        judge: None leaves NL_ASSERTION out, which the version says.
    """

    def __init__(self, task: Json, make_world: Callable[[], World], *, version: str, judge: Judge | None) -> None:
        self._criteria: Json = task["evaluation_criteria"] or {}
        self._make_world = make_world
        self._version = version
        self._judge = judge

    def score(self, evidence: Evidence) -> Score:
        """Return the score of an episode. Pure.

        Raises:
            ProviderError: the judge cannot be asked.
        """
        if not evidence.is_ended:
            return Score(value=0.0, success=False, parts={"ended": 0.0}, version=self._version)
        parts = {name: float(check(evidence)) for name, check in self._checks.items()}
        value = prod(parts.values())
        return Score(value=value, success=value >= PASS_MARK, parts=parts, version=self._version)

    @cached_property
    def _checks(self) -> dict[str, Callable[[Evidence], bool]]:
        checks = {
            "DB": self._has_gold_state,
            "ENV_ASSERTION": self._holds_assertions,
            "ACTION": self._has_gold_calls,
            "COMMUNICATE": self._says_enough,
            JUDGED: self._satisfies_judge,
        }
        basis = self._criteria.get("reward_basis") or DEFAULT_BASIS
        return {name.lower(): check for name, check in checks.items() if name in basis and self._is_scored(name)}

    def _is_scored(self, part: str) -> bool:
        return part != JUDGED or self._judge is not None

    @cached_property
    def _gold_state(self) -> State:
        world = self._make_world()
        world.replay(self._criteria.get("actions") or [])
        return world.state()

    def _has_gold_state(self, evidence: Evidence) -> bool:
        if self._criteria.get("actions") is None and self._criteria.get("env_assertions") is None:
            return True
        return evidence.world.state() == self._gold_state

    def _holds_assertions(self, evidence: Evidence) -> bool:
        return all(evidence.world.holds(assertion) for assertion in self._criteria.get("env_assertions") or ())

    def _has_gold_calls(self, evidence: Evidence) -> bool:
        gold = self._criteria.get("actions") or ()
        return all(any(_is_same(action, call) for call in evidence.calls) for action in gold)

    def _says_enough(self, evidence: Evidence) -> bool:
        said = [text.lower().replace(",", "") for text in evidence.said]
        return all(any(info.lower() in text for text in said) for info in self._criteria.get("communicate_info") or ())

    def _satisfies_judge(self, evidence: Evidence) -> bool:
        expected = self._criteria.get("nl_assertions") or []
        return not expected or self._judge is None or self._judge.meets_all(expected, evidence.conversation)


def is_judged(task: Json) -> bool:
    """Say whether a task's score depends on what a judge says."""
    criteria = task["evaluation_criteria"] or {}
    return JUDGED in (criteria.get("reward_basis") or ()) and bool(criteria.get("nl_assertions"))


def _is_same(action: Json, call: Call) -> bool:
    """Compare as upstream does: the named arguments, else those that the call gives."""
    named = action.get("compare_args")
    compared = call.arguments.keys() if named is None else named
    mine = {name: value for name, value in call.arguments.items() if name in compared}
    gold = {name: value for name, value in action["arguments"].items() if name in compared}
    return action["name"] == call.tool and (not compared or mine == gold)
