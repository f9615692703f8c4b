"""Scores agents that need no model: `python -m evolve.environments.service_desk.baselines` (train and guard)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from functools import partial

from evolve.environments.service_desk.cases import Case
from evolve.environments.service_desk.environment import create
from evolve.environments.service_desk.gold import gold_calls
from evolve.environments.service_desk.loop_tickets import loop_cases
from evolve.environments.service_desk.policy import CODES
from evolve.environments.service_desk.tools import CLOSE
from evolve.protocols import Environment
from evolve.records import Call, Split

Agent = Callable[[Case], Iterable[Call]]


def silent(case: Case) -> Iterable[Call]:
    """Do nothing."""
    return ()


def say_everything(resolution: str, case: Case) -> Iterable[Call]:
    """Close at once, repeating the ticket and every word that a statement may need, as far as it fits."""
    words = [*case.task.text.split(), "done", "refused", "escalated", "10.00", "25.00", *sorted(CODES)]
    numbers = [f"{letter}-{word.strip('#:.,')}" for word in words for letter in "OSC" if word.strip("#:.,").isdigit()]
    return [_close(resolution, " ".join([*numbers, *words]))]


def guess_code(code: str, case: Case) -> Iterable[Call]:
    """Refuse at once for one reason, whatever the ticket."""
    numbers = [f"O-{word.strip('#:.,')}" for word in case.task.text.split() if word.strip("#:.,").isdigit()]
    return [_close("refused", " ".join([*numbers, code]))]


def gold(case: Case) -> Iterable[Call]:
    """Solve the ticket."""
    return gold_calls(case)


def agents() -> dict[str, Agent]:
    """All agents by name, the gold one last."""
    named: dict[str, Agent] = {"silent": silent}
    named |= {f"say everything, {r}": partial(say_everything, r) for r in ("done", "refused", "escalated")}
    named |= {f"guess {code}": partial(guess_code, code) for code in sorted(CODES)}
    return named | {"gold": gold}


def mean_score(environment: Environment, agent: Agent, cases: Iterable[Case]) -> float:
    """Return an agent's mean score over cases, within the step limit."""
    scores = []
    for case in cases:
        session = environment.open(case.task, 0)
        for call in list(agent(case))[: environment.card.step_limit]:
            session.step(call)
        scores.append(session.score().value)
    return sum(scores) / len(scores)


def main() -> None:
    """Print a line per agent."""
    environment = create({})
    cases = [case for split in (Split.TRAIN, Split.GUARD) for case in loop_cases(split)]
    for name, agent in agents().items():
        sys.stdout.write(f"{name:32} {mean_score(environment, agent, cases):.3f}  n={len(cases)}\n")


def _close(resolution: str, statement: str) -> Call:
    return Call(tool=CLOSE, arguments={"resolution": resolution, "statement": statement[:300]})


if __name__ == "__main__":
    main()
