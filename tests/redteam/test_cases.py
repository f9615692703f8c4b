"""The list of attacks and the tests that try them say the same."""

from __future__ import annotations

import re
from pathlib import Path

from redteam.cases import cases

MARK = re.compile(r'\bcase\("([^"]+)"\)')


def test_what_is_held_has_a_test_and_the_rest_has_a_reason() -> None:
    """No attack is listed as held without a test and a control; what is not held says what is left open."""
    tried = {name for file in Path(__file__).parent.glob("test_*.py") for name in MARK.findall(file.read_text("utf-8"))}
    folder = Path(__file__).parents[1]
    for identifier, listed in cases().items():
        for file, _, test in (place.partition("::") for place in listed.elsewhere):
            assert f"def {test}(" in (folder / file).read_text("utf-8"), f"{identifier}: no test {test} in {file}"
        if listed.verdict == "held":
            assert identifier in tried or listed.elsewhere, f"{identifier} is listed as held, and no test tries it"
            assert listed.control, f"{identifier} does not say how it fails without the defence"
        else:
            assert listed.note, f"{identifier} does not say what is left open"
