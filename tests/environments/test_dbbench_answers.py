"""How a committed answer is compared with the expected values, and that it is never evaluated."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from evolve.environments.dbbench.answers import is_equal, values_of
from evolve.environments.dbbench.scoring import table_hash


@pytest.mark.parametrize(
    ("answer", "expected", "is_right"),
    [
        (["Chelsea"], ["Chelsea"], True),
        ("Chelsea", ["Chelsea"], True),
        (" 'Chelsea' ", ["Chelsea"], True),
        ('["Chelsea"]', ["Chelsea"], True),
        ("[('Chelsea',)]", ["Chelsea"], True),
        ("chelsea", ["Chelsea"], False),
        ("Chelsea FC", ["Chelsea"], False),
        (["b", "a", "a"], ["a", "b"], True),
        (["a"], ["a", "b"], False),
        ("[a, b]", ["a", "b"], True),
        ("['it''s', b]", ["its", "b"], True),
        ("5", ["5.0"], True),
        (5, ["5.0"], True),
        ("5.009", ["5.0"], True),
        ("5.02", ["5.0"], False),
        (["1", "1"], ["1.0"], False),
        (["1", "2"], ["2", "1"], True),
        (["1", "2"], ["1", "1"], False),
        ("3,729.7", ["3729.7"], True),
        ("12%", ["12"], True),
        ("12", ["12%"], True),
        (None, ["none"], True),
        ("", ["none"], True),
        ("NULL", ["0"], True),
        ("0", ["none"], True),
        ([None], ["none"], True),
        ([], ["none"], False),
        ("[]", ["none"], False),
        ("[('a', 'b')]", ["a"], False),
        ("[('a',), ('b',)]", ["b", "a"], True),
        ({"answer": "x"}, ["x"], False),
        (True, ["True"], True),
    ],
)
def test_answers_are_compared_by_value(answer: object, expected: list[str], is_right: bool) -> None:
    """Lists, texts and shown rows count alike; numbers within a hundredth; words for nothing are 0."""
    assert is_equal(answer, expected) is is_right


@pytest.mark.parametrize(
    "answer", ["[open('{}', 'w')]", "[__import__('pathlib').Path('{}').touch()]", "[(lambda: open('{}', 'w'))()]"]
)
def test_an_answer_is_never_evaluated(answer: str, tmp_path: Path) -> None:
    """Python code in an answer is a text and nothing more."""
    witness = tmp_path / "written"
    assert not is_equal(answer.format(witness), ["x"])
    assert not witness.exists()


@pytest.mark.parametrize(
    "answer",
    ["[" * 5000 + "]" * 5000, "[1, 2", "]", "[\x00]", r"['\d', '\\', '\x']", "[1][0]", "[9**9]", f"[0x{'f' * 5000}]"],
)
def test_any_text_can_be_compared(answer: str) -> None:
    """Nesting, escapes, control characters, half lists and endless numbers neither raise nor warn."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not is_equal(answer, ["x"])


def test_an_unknown_escape_keeps_its_backslash() -> None:
    """A backslash that means nothing to Python stands for itself."""
    assert values_of(r"['a\d', 'b\\']") == ["a\\d", "b\\"]


def test_the_hash_of_a_table_is_that_of_its_rows_in_any_order() -> None:
    """Row order does not matter, each row does."""
    assert table_hash(["a,1", "b,2"]) == table_hash(["b,2", "a,1"])
    assert table_hash(["a,1", "b,2"]) != table_hash(["a,1", "b,2", "b,2"])
