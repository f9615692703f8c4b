"""Compares texts as MySQL's accent- and case-insensitive collations do."""

from __future__ import annotations

import unicodedata


def folded(text: str) -> str:
    """Return the form in which two texts are equal where MySQL says so: no case, no accents, no trailing spaces."""
    bare = (char for char in unicodedata.normalize("NFKD", text) if not unicodedata.combining(char))
    return "".join(bare).casefold().rstrip(" ")


def is_like(text: str, pattern: str) -> bool:
    r"""Match LIKE: `%` is any text, `_` any character, a backslash takes the next character as it stands.

    Goes back to the last `%` only, so that the time is bounded by the product of the lengths.
    """
    signs = _signs(pattern)
    at, sign, retry_at, retry_sign = 0, 0, 0, -1
    while at < len(text):
        if sign < len(signs) and signs[sign] == "%":
            retry_at, retry_sign = at, sign
            sign += 1
        elif sign < len(signs) and signs[sign] in ("_", "=" + text[at]):
            at, sign = at + 1, sign + 1
        elif retry_sign >= 0:
            retry_at += 1
            at, sign = retry_at, retry_sign + 1
        else:
            return False
    return all(rest == "%" for rest in signs[sign:])


def _signs(pattern: str) -> list[str]:
    """Return a pattern's signs: `%`, `_`, or `=` and the character that must stand there."""
    signs = []
    characters = iter(pattern)
    for character in characters:
        if character in "%_":
            signs.append(character)
        else:
            signs.append("=" + (next(characters, character) if character == "\\" else character))
    return signs
