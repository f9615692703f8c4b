"""Plays the benchmark's own solutions: they show that sandbox and scorer work, not that a task is hard."""

from __future__ import annotations

from evolve.environments.os_interaction.problems import Problem
from evolve.environments.os_interaction.session import OUTPUT, OsSession
from evolve.records import Call, Score

KNOWN_MISSES = {
    "dev-0008": "the example prints 4.0K, which the benchmark's own check cannot read",
}


def play(problem: Problem, session: OsSession) -> Score:
    """Play gold and score it.

    A stored answer is answered as it stands. Else the example script is run by the agent's own tool; where the
    judge compares with the example's output (None in the chain), that output is the answer.
    """
    if problem.match is not None:
        stored = problem.match if isinstance(problem.match, str) else problem.match.get("answer", "")
        session.step(Call(tool="answer_action", arguments={"answer": stored}))
        return session.score()
    printed = ""
    if problem.example is not None:
        shown = session.step(Call(tool="bash_action", arguments={"script": problem.example.code})).text
        printed = shown.removeprefix(OUTPUT).strip()
    if None in problem.check:
        session.step(Call(tool="answer_action", arguments={"answer": printed}))
    else:
        session.step(Call(tool="finish_action", arguments={"thought": "done"}))
    return session.score()
