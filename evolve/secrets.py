"""Keeps credentials in: finds them in text that is about to be stored, and closes the memory that holds them.

It never prints what it finds.
"""

from __future__ import annotations

import ctypes
import json
import re
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

REMOVED = "[secret removed]"

_SHORTEST_VALUE = 8  # a variable that holds "none" or "1" must not cut words out of traces
_NAME = re.compile(r"_(KEY|TOKEN|SECRET|PASSWORD)$", re.IGNORECASE)
_SHAPES = re.compile(
    r"""
    \bsk-[A-Za-z0-9_-]{20,}                                  # OpenAI, Anthropic, OpenRouter
    | \bgh[pousr]_[A-Za-z0-9]{30,} | \bgithub_pat_\w{30,}    # GitHub
    | \bglpat-[A-Za-z0-9_-]{20,}                             # GitLab
    | \bhf_[A-Za-z0-9]{30,}                                  # Hugging Face
    | \bgsk_[A-Za-z0-9]{40,}                                 # Groq
    | \bxox[abeprs]-[A-Za-z0-9-]{10,}                        # Slack
    | \b(?:AKIA|ASIA)[A-Z0-9]{16}\b                          # Amazon
    | \bAIza[A-Za-z0-9_-]{35}                                # Google
    | \bnpm_[A-Za-z0-9]{36} | \bpypi-[A-Za-z0-9_-]{50,}      # package registries
    | \beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}    # a signed web token
    | -----BEGIN\ [A-Z ]*PRIVATE\ KEY-----(?:.*?-----END\ [A-Z ]*PRIVATE\ KEY-----|.*)
    """,
    re.VERBOSE | re.DOTALL,
)

_MARKS = (
    re.compile(rb"_(?:(?<=gh[pousr]_)|(?<=github_pat_)|(?<=hf_)|(?<=gsk_)|(?<=npm_))"),
    re.compile(rb"-(?:(?<=sk-)|(?<=glpat-)|(?<=pypi-))"),
    re.compile(rb"A(?=KIA|SIA|Iza)"),
    re.compile(rb"x(?=ox)"),
    re.compile(rb"J(?<=eyJ)"),
    re.compile(rb"Y(?<=PRIVATE KEY)"),
)
"""Each shape holds one of these. Each begins with a letter that is rare in text: so looking for all of them takes a
hundredth of the time that looking for the shapes takes."""

_PR_GET_DUMPABLE, _PR_SET_DUMPABLE = 3, 4


def secret_values(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the values of variables that are named like credentials, longest first."""
    values = {value for name, value in environ.items() if _NAME.search(name) and len(value) >= _SHORTEST_VALUE}
    return tuple(sorted(values, key=lambda value: (-len(value), value)))


def find_secrets(text: str, values: Collection[str] = ()) -> list[str]:
    """Return each piece of `text` that has the shape of a key or equals one of `values`."""
    return [match.group() for match in _SHAPES.finditer(text)] + [value for value in values if value and value in text]


def remove_secrets(text: str, values: Collection[str] = ()) -> str:
    """Return `text` with each secret replaced by a remark."""
    for value in sorted(values, key=len, reverse=True):  # one may be the beginning of another
        text = text.replace(value, REMOVED) if value else text
    return _SHAPES.sub(REMOVED, text)


def may_hold_secret(line: bytes, values: Collection[str] = ()) -> bool:
    """Say whether a line of JSON can hold a secret; False is sure, True asks for a closer look."""
    written = (json.dumps(value, ensure_ascii=False)[1:-1].encode() for value in values if value)
    return any(mark.search(line) for mark in _MARKS) or any(value in line for value in written)


def scrub(value: Any, values: Collection[str] = ()) -> Any:
    """Return a JSON value whose strings, keys included, hold no secret."""
    if isinstance(value, str):
        return remove_secrets(value, values)
    if isinstance(value, list):
        return [scrub(item, values) for item in value]
    if isinstance(value, dict):
        return {remove_secrets(key, values): scrub(item, values) for key, item in value.items()}
    return value


@contextmanager
def private_memory() -> Iterator[bool]:
    """Refuse other processes a look into this one while the block lasts; gives False where the system cannot.

    On Linux a process of the same user, a child above all, then reads neither memory nor variables of this one, no
    debugger attaches, and no core is dumped. Programs that are started are as ever. Root reads everything anyway.
    """
    if sys.platform != "linux":
        yield False
        return
    control = ctypes.CDLL(None, use_errno=True).prctl
    before = control(_PR_GET_DUMPABLE, 0, 0, 0, 0)
    control(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    try:
        yield control(_PR_GET_DUMPABLE, 0, 0, 0, 0) == 0
    finally:
        if before == 1:
            control(_PR_SET_DUMPABLE, 1, 0, 0, 0)
