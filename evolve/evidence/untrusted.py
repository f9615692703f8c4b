"""Shows text that models and environments wrote, so that it can be read and cannot act.

Such text may hold instructions, terminal codes, invisible characters, or the end of its own fence. A fence is
longer than any run of ticks inside, and its first and last line carry a mark made from the text itself: whoever wrote
the text cannot have written its mark, and equal runs still write equal evidence.
"""

from __future__ import annotations

import hashlib
import re

from evolve.classify.excerpt import visible


def fenced(text: str, longest: int) -> str:
    """Return a text as a Markdown block of data that nothing inside it can close or pass for.

    Args:
        text: what was written; lines are kept, all other control and invisible characters are shown as escapes.
        longest: characters; of a longer text the beginning and the end are kept.
    """
    shown = _shortened("\n".join(visible(line, len(line) * 10) for line in text.split("\n")), longest)
    fence = "`" * max(3, _longest_run(shown) + 1)
    mark = mark_of(shown)
    return f"{fence}text\n<<data {mark}\n{shown}\ndata {mark}>>\n{fence}"


def mark_of(shown: str) -> str:
    """Return the mark of a text: to hold its own, a text would have to be found among 2^64."""
    return hashlib.sha256(shown.encode("utf-8", "backslashreplace")).hexdigest()[:16]


def inline(text: str, longest: int = 160) -> str:
    """Return a text as one code span that also fits into a cell of a table."""
    shown = visible(text, longest).replace("|", "¦").strip() or " "
    ticks = "`" * (_longest_run(shown) + 1)
    room = " " if "`" in shown else ""
    return f"{ticks}{room}{shown}{room}{ticks}"


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall("`+", text)), default=0)


def _shortened(text: str, longest: int) -> str:
    if len(text) <= longest:
        return text
    head = longest * 2 // 3
    tail = longest - head
    return f"{text[:head]}\n[... {len(text) - longest} characters left out ...]\n{text[-tail:]}"
