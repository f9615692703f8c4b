"""The list of attacks, and the mark that ties a test to one of them.

`cases.toml` holds one table for each attack; its head says what each key means. A test says which attack it tries with
`@case("20.home")`; tests in other folders are named by the list.
`test_cases.py` holds the two together: an attack that is listed as held has a test, and a test names
an attack that is listed. docs/security.md shows the list.

Each test has a control: the same attack without the defence, which must succeed. A defence that is taken out of the
product makes the first half of the test fail; a test that has lost its teeth fails in the second half.
"""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Literal

import pytest
from pydantic import Field

from evolve.records import Record

LIST = Path(__file__).with_name("cases.toml")


class Case(Record):
    """One attack."""

    id: str = Field(pattern=r"^(\d{2}|x)\.[a-z0-9-]+$")
    party: Literal["proposer", "harness", "environment", "user"]
    attack: str
    defence: str
    tier: str
    verdict: Literal["held", "not held", "not applicable"]
    control: str = ""
    note: str = ""
    elsewhere: tuple[str, ...] = Field(default=(), description="FILE::TEST below tests/ that try it and bear no mark")


@cache
def cases() -> dict[str, Case]:
    """Return all attacks by id, in the order of the list."""
    return {row["id"]: Case(**row) for row in tomllib.loads(LIST.read_text("utf-8"))["case"]}


def case(identifier: str) -> pytest.MarkDecorator:
    """Mark a test as the one that tries an attack of the list."""
    if identifier not in cases():
        raise KeyError(f"{identifier} is not in {LIST.name}")
    return pytest.mark.case(identifier)
