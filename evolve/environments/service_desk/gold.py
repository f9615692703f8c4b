"""The gold solution of a case as calls. Used by the scorer, the tests and the baselines, never by a session's tools."""

from __future__ import annotations

from copy import deepcopy

from evolve.environments.service_desk.cases import Case, Draft
from evolve.environments.service_desk.desk import Desk
from evolve.environments.service_desk.policy import reference
from evolve.environments.service_desk.tools import CLOSE, TABLE
from evolve.records import Call


def gold_calls(case: Case) -> tuple[Call, ...]:
    """Return the calls that solve a case, the closing one last."""
    gold = case.draft.gold
    names, calls = gold.must_name, gold.calls
    if gold.attempt is not None:
        names, calls = (gold.code, reference(case.task.text, gold.attempt)), (*calls, gold.attempt)
    statement = f"Ticket {gold.resolution}: {', '.join(names)}."
    return (*calls, Call(tool=CLOSE, arguments={"resolution": gold.resolution, "statement": statement}))


def gold_desk(draft: Draft) -> Desk:
    """Return the database that the gold calls leave behind."""
    desk = deepcopy(draft.desk)
    for call in draft.gold.calls:
        TABLE[call.tool].run(desk, call.arguments)
    return desk
