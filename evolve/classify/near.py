"""Finds the one choice that a slightly wrong value can mean, or says that there is none.

A harness rule carries these functions word for word, so that a rule repairs exactly what a signal counted:
standard library only, no module state, no annotations that need an import.
"""

import difflib
import re


def plain_words(text: str) -> list[str]:
    """Return the words of a name or phrase without case, articles, punctuation, '#' and camel case."""
    spaced = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", text).lower()
    return [word for word in re.findall(r"[^\W\d_]+|\d+", spaced) if word not in ("a", "an", "the")]


def placed_words(text: str) -> list[str]:
    """Return the plain words with all ways of saying 'in or on' made one."""
    words: list[str] = []
    for word in plain_words(text):
        same = "in" if word in ("in", "on", "into", "onto", "inside") else word
        if same != "in" or words[-1:] != ["in"]:
            words.append(same)
    return words


def abridges(short: list[str], full: list[str]) -> bool:
    """Say whether `short` is `full` with only numbers and small words left out."""
    rest = iter(short)
    wanted = next(rest, None)
    for word in full:
        if word == wanted:
            wanted = next(rest, None)
        elif not word.isdigit() and word not in ("in", "to", "at", "from", "with", "off", "of"):
            return False
    return wanted is None


def is_misspelt(left: list[str], right: list[str]) -> bool:
    """Say whether two phrases differ by small spelling slips inside words: first letters and numbers must agree."""
    for one, other in zip(left, right, strict=False):
        is_slip = one.isalpha() and other.isalpha() and min(len(one), len(other)) >= 4 and one[0] == other[0]
        if one != other and not (is_slip and difflib.SequenceMatcher(None, one, other).ratio() >= 0.84):
            return False
    return len(left) == len(right)


def near_match(value: str, choices: list[str]) -> str | None:
    """Return the one choice that `value` can mean, or None where none or several fit.

    Tried from strict to loose: equal but for case, articles and punctuation; equal but for 'in' and 'on';
    numbers or small words left out; spelling slips. Several fits at the first level that has any mean None.
    """
    words = placed_words(value)
    if not words:
        return None
    bare = "".join(plain_words(value))
    levels = (
        {choice for choice in choices if "".join(plain_words(choice)) == bare},
        {choice for choice in choices if placed_words(choice) == words},
        {choice for choice in choices if abridges(words, placed_words(choice))},
        {choice for choice in choices if is_misspelt(words, placed_words(choice))},
    )
    hits = next((level for level in levels if level), set())
    return min(hits) if len(hits) == 1 else None
