"""Judges what an agent committed: by a stored answer, or by a chain of scripts in its sandbox."""

from __future__ import annotations

import re
from collections.abc import Callable

from evolve.environments.os_interaction.problems import Problem
from evolve.environments.os_interaction.sandbox import Outcome
from evolve.records import Json, Score

VERSION = "1"
PASS_MARK = 1.0


def score(problem: Problem, committed: object, run: Callable[[list[str]], Outcome]) -> Score:
    """Return 1.0 where the commitment is right, else 0.0.

    Args:
        committed: the answer, or the thought that a finish came with; None where that had none.
        run: runs a program in the agent's sandbox.
    """
    match = problem.match
    is_right = passes(problem, committed, run) if match is None else is_match(match, committed)
    return Score(value=float(is_right), success=is_right, version=VERSION)


def nothing_committed() -> Score:
    """Return the score of an episode that did not answer or finish."""
    return Score(value=0.0, success=False, version=VERSION)


def is_match(match: str | Json, committed: object) -> bool:
    """Compare with a stored answer or regular expression; only text can be equal to text."""
    expected: Json = {"answer": match, "strip": True} if isinstance(match, str) else match
    if not isinstance(committed, str):
        return False
    answer = committed.strip() if expected.get("strip") else committed
    if "answer" in expected:
        return bool(answer == expected["answer"])
    return "regex" in expected and re.search(expected["regex"], answer) is not None


def passes(problem: Problem, committed: object, run: Callable[[list[str]], Outcome]) -> bool:
    """Run the chain: each script gets the answer and the outputs of those before it, and must end with status 0."""
    parameters = [str(committed).replace("\0", "")]
    for script in problem.check:
        script = script or problem.example
        assert script is not None  # `read_problems` has seen to it
        outcome = run(script.argv(*parameters))
        if outcome.is_late or outcome.status != 0:
            return False
        parameters.append(outcome.output.decode("utf-8", "replace").replace("\0", ""))
    return True
