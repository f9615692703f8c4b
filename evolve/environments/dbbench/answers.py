"""Compares a committed answer with the expected values as the benchmark does, without evaluating what an agent wrote.

An answer is a list, a text, or a text that looks like a list: as JSON, as Python, or as rows were shown.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence

NOTHING = "0"
WORDS_FOR_NOTHING = ("", "none", "null", "undefined", "nan", "inf", "infinity", "-inf", "-infinity")
TOLERANCE = 1e-2
QUOTES = "'\""
KNOWN_ESCAPES = "\\'\"abfnrtv01234567xNuU\n"


def is_equal(answer: object, expected: Sequence[str]) -> bool:
    """Say whether an answer has the expected values: numbers within a hundredth, texts as a set."""
    try:
        given = values_of(answer)
    except ValueError:  # a whole number that is too long to write out
        return False
    wanted = values_of(list(expected))
    if all(map(_is_number, given)) and all(map(_is_number, wanted)):
        return _are_same_numbers(given, wanted)
    return set(given) == set(wanted)


def values_of(answer: object) -> list[str]:
    """Return the values of an answer in the form in which they are compared."""
    if isinstance(answer, list | tuple):
        return [_comparable(value) for value in answer]
    if not isinstance(answer, str):
        return [NOTHING if answer is None else _comparable(answer)]
    text = answer.strip()
    if not (text.startswith("[") and text.endswith("]")):
        return [_comparable(text)]
    parsed = _parsed(text)
    if parsed is None:
        return [_comparable(piece) for piece in _pieces(text[1:-1])]
    rows = [row for row in parsed if isinstance(row, tuple)]
    if text == answer and len(rows) == len(parsed):
        parsed = [row for row in rows if len(row) == 1]  # rows as they were shown; wider ones hold no single value
    return [_comparable(value) for value in parsed]


def _comparable(value: object) -> str:
    """Return one value without quotes, percent sign and thousands separators; all words for nothing are 0."""
    if isinstance(value, tuple) and len(value) == 1:
        value = value[0]
    text = str(value).strip().strip(QUOTES).strip()
    if text.endswith("%"):
        return text[:-1].strip()
    if not text.startswith("[") and not text.endswith("]"):
        text = text.replace(",", "")
    return NOTHING if text.lower() in WORDS_FOR_NOTHING else text


def _parsed(text: str) -> list[object] | None:
    """Read a text as a Python list of plain values; None where it is no such list."""
    try:
        value = ast.literal_eval(re.sub(r"\\(.)", _known_escape, text, flags=re.DOTALL))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None
    return value if isinstance(value, list) else None


def _known_escape(match: re.Match[str]) -> str:
    r"""Double the backslash of an escape that Python would warn of; the value is the same."""
    return match[0] if match[1] in KNOWN_ESCAPES else "\\" + match[0]


def _pieces(text: str) -> Iterable[str]:
    """Split at the commas that stand outside quotes; the quotes themselves go, and so do empty pieces."""
    piece, is_quoted = "", False
    for character in text:
        if character in QUOTES:
            is_quoted = not is_quoted
        elif character == "," and not is_quoted:
            yield from [piece] if piece else []
            piece = ""
        else:
            piece += character
    yield from [piece] if piece else []


def _is_number(value: str) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True


def _are_same_numbers(given: Sequence[str], wanted: Sequence[str]) -> bool:
    """Pair the numbers one to one, first come first served."""
    left = [float(value) for value in wanted]
    for value in map(float, given):
        match = next((number for number in left if abs(value - number) <= TOLERANCE), None)
        if match is None:
            return False
        left.remove(match)
    return not left
