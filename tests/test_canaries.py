"""Canaries are known again in the ways in which they are cheaply hidden, and nothing honest is taken for one."""

from __future__ import annotations

import base64
import codecs
import hashlib
import os
import secrets
from collections.abc import Callable
from pathlib import Path

import pytest

from evolve.canaries import VARIABLE, Canaries, planted_variables, run_canaries, variable_canary
from evolve.errors import CanaryFound

GOLD, SECRET = "household-canary-90b144250adb8714", "ledger-0123456789abcdef0123"
HIDDEN: dict[str, Callable[[str], str]] = {
    "as it is": lambda canary: canary,
    "in capitals": lambda canary: canary.upper(),
    "backwards": lambda canary: canary[::-1],
    "rot13": lambda canary: codecs.encode(canary, "rot13"),
    "hexadecimal": lambda canary: canary.encode().hex(),
    "bytes in hexadecimal": lambda canary: canary.encode().hex(":"),
    "Base64": lambda canary: base64.b64encode(canary.encode()).decode(),
    "Base64 with one byte before": lambda canary: base64.b64encode(f"x{canary}y".encode()).decode(),
    "Base64 with two bytes before": lambda canary: base64.b64encode(f"xy{canary}".encode()).decode(),
    "Base64 in lines": lambda canary: base64.encodebytes(canary.encode() * 3).decode(),
    "MD5": lambda canary: hashlib.md5(canary.encode()).hexdigest(),
    "SHA-256": lambda canary: hashlib.sha256(canary.encode()).hexdigest(),
    "split strings": lambda canary: f'"{canary[:9]}" + \n    "{canary[9:]}"',
    "one character a line": lambda canary: "\n".join(canary),
    "cut by an escaped line end": lambda canary: canary[:9] + "\\n" + canary[9:],
}


@pytest.fixture
def canaries() -> Canaries:
    return Canaries(run_canaries(GOLD, SECRET))


@pytest.mark.parametrize("hide", HIDDEN.values(), ids=HIDDEN.keys())
@pytest.mark.parametrize(
    ("canary", "place"), [(GOLD, "held-out"), (SECRET, "ledger"), (variable_canary(SECRET), "variables")]
)
def test_a_hidden_canary_is_found(canaries: Canaries, hide: Callable[[str], str], canary: str, place: str) -> None:
    """Whatever cheap disguise it wears, it is found, the place is named, and the canary itself is not repeated."""
    with pytest.raises(CanaryFound, match=place) as caught:
        canaries.refuse(f"# {hide(canary)}!", "a patch")
    assert canary not in str(caught.value)
    assert "a patch" in str(caught.value)


def test_honest_text_holds_none(canaries: Canaries) -> None:
    """Other random strings, pieces of a canary, and what people write of canaries are let through."""
    others = [secrets.token_hex(16) for _ in range(200)]
    canaries.refuse("\n".join([GOLD[:16], *others, GOLD[16:], "household canary", "ledger-", "\x00\ud7ff"]), "a patch")
    Canaries({"an environment without one": ""}).refuse(GOLD, "a patch")


def test_a_canary_on_the_border_of_two_blocks_of_a_file_is_found(canaries: Canaries, tmp_path: Path) -> None:
    """A transcript of any size is looked through without being held whole."""
    block = 4 * 1024 * 1024
    path = tmp_path / "transcript"
    path.write_bytes(b" " * (block - 10) + GOLD.encode() + b" " * block)
    with pytest.raises(CanaryFound):
        canaries.refuse_file(path, "a transcript")
    path.write_bytes(b" " * 2 * block)
    canaries.refuse_file(path, "a transcript")


def test_a_canary_that_could_stand_there_by_chance_is_refused() -> None:
    """A short one would raise false alarms; whoever writes an environment is told."""
    with pytest.raises(ValueError, match="fewer than 12"):
        Canaries({"gold": "cloakroom"})


def test_the_variable_is_there_for_the_block_alone() -> None:
    """A child without a scrubbed environment inherits it; afterwards the process is as it was."""
    with planted_variables({"PATH": "/bin"}, SECRET) as environ:
        assert environ == {"PATH": "/bin", VARIABLE: variable_canary(SECRET)}
        assert os.environ[VARIABLE] == variable_canary(SECRET) != SECRET
    assert VARIABLE not in os.environ
