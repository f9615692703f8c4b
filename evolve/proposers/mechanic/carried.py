"""What rules over the history share. The mechanic writes these functions word for word into the rule files that
need them, beside those of `evolve.classify.near` and `evolve.classify.readings`: no module state, allowed imports only.
"""

import difflib
import json

from evolve.rules import Call, PastStep, View


def called(step: PastStep) -> Call | None:
    """Return the call that a step ran, else the one that it proposed."""
    return step.executed or step.proposed


def same_call(left: Call | None, right: Call | None) -> bool:
    """Say whether two calls ask for the same."""
    return left is not None and right is not None and (left.tool, left.arguments) == (right.tool, right.arguments)


def spelt(call: Call) -> str:
    """Return a call in few words: its only argument, or the tool with its arguments."""
    arguments = dict(call.arguments or {})
    if len(arguments) == 1:
        return str(next(iter(arguments.values())))
    return f"{call.tool} {json.dumps(arguments)}"


def acting_argument(view: View, tool: str) -> str | None:
    """Return the one open string parameter of a tool, the one that published actions are values of, or None."""
    known = view.tool(tool)
    properties = known.parameters.get("properties", {}) if known else {}
    names = [n for n, schema in properties.items() if schema.get("type") == "string" and "enum" not in schema]
    return names[0] if len(names) == 1 else None


def answers_to(view: View, call: Call) -> list[str]:
    """Return what the environment answered each time that this call was made, in order."""
    return [step.observation for step in view.history if same_call(called(step), call)]


def goes_round(view: View) -> bool:
    """Say whether the last call got the same answer before, or the last four calls are two in turn."""
    last = called(view.history[-1]) if view.history else None
    if last is None:
        return False
    made = [call for call in map(called, view.history) if call is not None][-4:]
    is_swing = len(made) == 4 and same_call(made[0], made[2]) and same_call(made[1], made[3])
    return is_swing or answers_to(view, last).count(view.history[-1].observation) >= 2


def fruitless(view: View, most: int = 5) -> list[str]:
    """Return the calls made at least twice with the same answer, or refused, latest first."""
    found: list[str] = []
    for step in reversed(view.history):
        call = called(step)
        if call is None or spelt(call) in found:
            continue
        if step.error is not None or answers_to(view, call).count(step.observation) >= 2:
            found.append(spelt(call))
    return found[:most]


def content(text: str) -> list[str]:
    """Return what an action is about: its words after the verb, without small words, case and plural."""
    words = [word.strip(".,:;!?'\"").lower() for word in text.split()]
    small = ("from", "with", "into", "onto", "under", "the", "and")
    return [word.rstrip("s") for word in words[1:] if len(word) >= 3 and word not in small]


def since_progress(view: View) -> list[PastStep]:
    """Return the steps since a new call about something that the task names first got an answer without error."""
    task, seen, start = content(view.task), [], 0
    for index, step in enumerate(view.history):
        call = called(step)
        words = content(spelt(call)) if call is not None else []
        if call is not None and spelt(call) not in seen and step.error is None and words[:1] and words[0] in task:
            start = index
        seen += [spelt(call)] if call is not None else []
    return list(view.history[start:])


def untried(view: View, most: int = 3) -> list[str]:
    """Return published actions not tried since the last progress, the most fitting first.

    First those about what the task names, then those that became possible just now. What handles something that
    the task does not name, puts it where the task does not say, or only undoes a step, is left out while anything
    else is left: a small model takes whatever is listed.
    """
    done = [spelt(call) for call in map(called, since_progress(view)) if call is not None]
    task = content(view.task)
    earlier = [step.admissible for step in view.history[:-1] if step.admissible is not None]
    known = earlier[-1] if earlier else ()

    def is_idle(action: str) -> bool:
        verb, words = action.split()[:1], content(action)
        is_misplaced = verb in (["put"], ["drop"], ["place"], ["leave"]) and not all(word in task for word in words)
        is_undoing = len(words) >= 2 and any(words == content(other) for other in done)
        is_foreign = words[0] not in task and (len(words) >= 2 or verb == ["use"]) if words else True
        return is_misplaced or is_undoing or is_foreign or verb == ["close"]

    def rank(action: str) -> tuple[bool, int, bool]:
        words = content(action)
        shared = sum(word in task for word in words) if words[:1] and words[0] in task else 0
        return is_idle(action), -shared if shared > 1 or action not in known else 0, action in known

    left = [action for action in view.admissible or () if action not in done]
    useful = [action for action in left if not is_idle(action)] or left
    return sorted(useful, key=lambda action: (rank(action), left.index(action)))[:most]


def most_alike(value: str, choices: tuple[str, ...], most: int = 8) -> list[str]:
    """Return the choices most like a value first."""

    def likeness(choice: str) -> float:
        return difflib.SequenceMatcher(None, value.lower().split(), choice.lower().split()).ratio()

    return sorted(choices, key=lambda choice: (-likeness(choice), choices.index(choice)))[:most]
