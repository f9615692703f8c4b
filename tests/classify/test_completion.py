"""What can be completed by a pattern, and what must not."""

import pytest

from evolve.classify.completion import completed, fits, published_pattern

ORDER = "^O-[0-9]{4}$"


@pytest.mark.parametrize(
    ("value", "pattern", "whole"),
    [
        ("1512", ORDER, "O-1512"),
        (1512, ORDER, "O-1512"),
        ("#1512", ORDER, "O-1512"),
        ("order 1512", ORDER, "O-1512"),
        ("Order no. 1512.", ORDER, "O-1512"),
        ("o-1512", ORDER, "O-1512"),
        ("O1512", ORDER, "O-1512"),
        ("1512 (order 1512)", ORDER, "O-1512"),
        ("the 77", r"^INV:\d{2,3}$", "INV:77"),
        ("AB12", "^K/[A-Z]{2}[0-9]+$", "K/AB12"),
    ],
)
def test_a_value_that_holds_just_the_free_part_is_completed(value: object, pattern: str, whole: str) -> None:
    """Signs, words around it and the fixed letters in another form are seen through."""
    assert completed(value, pattern) == whole
    assert fits(whole, pattern)


@pytest.mark.parametrize(
    ("value", "pattern"),
    [
        ("O-1512", ORDER),
        ("151", ORDER),
        ("15123", ORDER),
        ("S-1512", ORDER),
        ("1512-2", ORDER),
        ("1512 and 1519", ORDER),
        ("", ORDER),
        (True, "^K-[A-Za-z]+$"),
        (None, ORDER),
        ([1512], ORDER),
        ("two words", "^K-[a-z]+$"),
        ("1512", "[0-9]{5}"),
        ("1512", "^(O|S)-[0-9]{4}$"),
        ("1512", "^O-[^0-9]{4}$"),
        ("1512", "^O-([0-9]{4}$"),
        ("1512", None),
    ],
)
def test_what_fits_or_is_ambiguous_or_of_another_form_is_left(value: object, pattern: object) -> None:
    """Nothing is guessed: other lengths, other letters, several candidates and patterns of other forms give None."""
    assert completed(value, pattern) is None


@pytest.mark.parametrize(
    ("schema", "pattern"),
    [
        ({"type": "string", "pattern": ORDER}, ORDER),
        ({"type": "string", "description": f"The order, {ORDER} as on the bill."}, ORDER),
        ({"type": "string", "description": "^S-[0-9]$", "pattern": ORDER}, ORDER),
        ({"type": "string", "description": "Costs 5 $ or more."}, None),
        ({}, None),
    ],
)
def test_a_pattern_is_published_as_such_or_in_the_description(schema: dict[str, str], pattern: str | None) -> None:
    """Both places count, since decoders that enforce `pattern` make schemas put it in words."""
    assert published_pattern(schema) == pattern


def test_a_pattern_that_cannot_be_compiled_finds_no_fault() -> None:
    """A schema with a pattern of another dialect makes no call wrong."""
    assert fits("1512", "^O-([0-9]{4}$")
