"""Shows a few steps of an episode as short lines. What models and environments wrote is data: control characters
are made visible, so that a text cannot steer a terminal or pass for another line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import orjson

from evolve.records import Episode, Step

LONGEST_LINE = 200
STEPS_BEFORE = 2

_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0000-\U000e0fff]"
)
"""Characters that pass for printable and show as nothing: words can be hidden in runs of them."""


def visible(text: str, longest: int = LONGEST_LINE) -> str:
    """Return a text on one line with control and invisible characters escaped, cut to a length."""
    shown = "".join(c if is_seen(c) else c.encode("unicode_escape").decode() for c in text)
    return shown if len(shown) <= longest else f"{shown[: longest - 1]}…"


def is_seen(character: str) -> bool:
    """Say whether a character shows, and shows where it stands: no control, no direction mark, nothing invisible."""
    return character.isprintable() and not _UNSEEN.match(character)


def excerpt_of(episode: Episode, step: int) -> str:
    """Return the steps that lead to a step and that step itself, two to four lines each."""
    shown = episode.steps[max(0, step - STEPS_BEFORE) : step + 1]
    return "\n".join(line for one in shown for line in _lines(one))


def _lines(step: Step) -> Iterator[str]:
    if step.text.strip():
        yield f"step {step.index} model says: {visible(step.text)}"
    if step.proposed is not None:
        yield f"step {step.index} model calls: {step.proposed.tool}({visible(step.proposed.arguments_text)})"
    proposed = None if step.proposed is None else (step.proposed.tool, step.proposed.arguments)
    if step.executed is not None and proposed != (step.executed.tool, step.executed.arguments):
        arguments = orjson.dumps(step.executed.arguments).decode()
        yield f"step {step.index} harness runs: {step.executed.tool}({visible(arguments)})"
    kind = step.observation.error_kind
    what = "blocked" if step.is_blocked else kind.value if kind else "ok"
    yield f"step {step.index} answer [{what}]: {visible(step.observation.text)}"
    if step.note:
        yield f"step {step.index} harness notes: {visible(step.note)}"
