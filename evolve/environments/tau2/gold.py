"""Plays the gold actions of training tasks through a session, to show that adapter and scorer agree with upstream."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from evolve.environments.tau2.environment import Tau2
from evolve.environments.tau2.session import DONE_TOOL, Tau2Session
from evolve.records import Call, Json, Task


def play_gold(environment: Tau2, task: Task) -> Tau2Session:
    """Play a task's gold actions, say what has to be said, end it, and return the session.

    With a scripted customer, the script has to be `gold_script` of the task: their calls are made while the agent
    waits for an answer.
    """
    official = environment.official(task)
    session = environment.open(task, 0)
    has_user = all(tool.name != DONE_TOOL for tool in session.tools)
    for requestor, actions in groupby(gold_actions(official), key=_requestor):
        if has_user and requestor == "user":
            session.say("Please do that now.")
            continue
        for action in actions:
            session.step(Call(tool=action["name"], arguments=action["arguments"]))
    facts = "\n".join(official["evaluation_criteria"].get("communicate_info") or ())
    if has_user:
        session.say(facts or "Goodbye.")
    else:
        if facts:
            session.say(facts)
        session.step(Call(tool=DONE_TOOL, arguments={}))
    return session


def gold_script(official: Json) -> list[str | Json]:
    """Return the replies of a customer who makes the gold calls that are theirs, and then stops."""
    replies: list[str | Json] = ["Hello."]
    for requestor, actions in groupby(gold_actions(official), key=_requestor):
        if requestor == "user":
            replies += [{"tool": action["name"], "arguments": action["arguments"]} for action in actions]
            replies.append("I did.")
    return replies


def gold_actions(official: Json) -> Sequence[Json]:
    """Return the gold actions of a task as the benchmark has it."""
    return official["evaluation_criteria"].get("actions") or ()


def _requestor(action: Json) -> str:
    return action.get("requestor") or "assistant"
