"""What commands print: a result on standard output, as text or as one JSON document; the rest on standard error."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Sequence

from evolve.classify.excerpt import is_seen
from evolve.errors import InfrastructureError
from evolve.records import Json

SCHEMA_VERSION = 1
_KEPT = "\n\t"
_DIFF_COLOURS = {"+": "32", "-": "31", "@": "36"}


def show(document: Json, text: str, *, as_json: bool) -> None:
    """Print a result."""
    whole = {"schema_version": SCHEMA_VERSION, **document}
    is_any_letter = (getattr(sys.stdout, "encoding", None) or "utf-8").lower().replace("-", "") == "utf8"
    _write(json.dumps(whole, indent=2, ensure_ascii=not is_any_letter) if as_json else visible(text))


def say(text: str) -> None:
    """Tell people something beside the result."""
    print(visible(text), file=sys.stderr)


def visible(text: str) -> str:
    """Return text in which control and invisible characters show: what models wrote must drive no terminal.

    A patch, too, reads as it stands: no character of it turns the direction of a line or hides.
    """
    return "".join(c if c in _KEPT or is_seen(c) else c.encode("unicode_escape").decode() for c in text)


def is_interactive() -> bool:
    """Tell whether a person can be asked."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def has_colour() -> bool:
    """Tell whether standard output takes colours and nobody asked for none."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def show_diff(diff: str) -> None:
    """Print a diff, in colour on a terminal."""
    is_coloured = has_colour()
    lines = []
    for line in visible(diff).splitlines():
        colour = _DIFF_COLOURS.get(line[:1]) if is_coloured else None
        lines.append(f"\x1b[{colour}m{line}\x1b[0m" if colour else line)
    _write("\n".join(lines))


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return rows as aligned columns under a head; numbers to the right. Nothing is cut off."""
    cells = [[_cell(value) for value in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(head, *cells, strict=True)]
    is_number = [bool(cells) and all(_is_number(row[i]) for row in cells) for i in range(len(head))]
    lines = [
        "  ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, is_number, strict=True)
        )
        for row in [list(head), *cells]
    ]
    return "\n".join(line.rstrip() for line in lines)


def _write(text: str) -> None:
    """Write to standard output; a result that nobody can see is an error."""
    if sys.stdout is None:  # closed before evolve began
        raise InfrastructureError("standard output is closed, so nothing can be shown; open it, or send it to a file")
    print(text, flush=True)


def _cell(value: object) -> str:
    return "–" if value is None else " ".join(str(value).split())


def _is_number(cell: str) -> bool:
    return cell == "–" or re.fullmatch(r"[+-]?[\d.,]+%?", cell) is not None
