"""The gold solution of a case as calls. Used by the scorer, the tests and the baselines, never by a session's tools."""

from __future__ import annotations

from copy import deepcopy

from evolve.environments.service_desk.cases import Case, Draft
from evolve.environments.service_desk.desk import Desk
from evolve.environments.service_desk.tools import CLOSE, TABLE
from evolve.records import Call


def gold_calls(case: Case) -> tuple[Call, ...]:
    """Return the calls that solve a case, the closing one last."""
    gold = case.draft.gold
    statement = f"Ticket {gold.resolution}: {', '.join(gold.must_name)}."
    closing = Call(tool=CLOSE, arguments={"resolution": gold.resolution, "statement": statement})
    return (*gold.calls, closing)


def gold_desk(draft: Draft) -> Desk:
    """Return the database that the gold calls leave behind."""
    desk = deepcopy(draft.desk)
    for call in draft.gold.calls:
        TABLE[call.tool].run(desk, call.arguments)
    return desk
