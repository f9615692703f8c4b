"""What counts as near, and what must not."""

import pytest

from evolve.classify.near import near_match

ACTIONS = ["go to drawer 1", "go to drawer 2", "open fridge 1", "close fridge 1", "put mug 1 in fridge 1"]


@pytest.mark.parametrize(
    ("value", "choices", "near"),
    [
        ("Open the Fridge #1.", ACTIONS, "open fridge 1"),
        ("cancelOrder", ["cancel_order", "get_order"], "cancel_order"),
        ("put the mug 1 on fridge 1", ACTIONS, "put mug 1 in fridge 1"),
        ("open fridge", ACTIONS, "open fridge 1"),
        ("go drawer 2", ACTIONS, "go to drawer 2"),
        ("Changed Mind", ["changed_mind", "found_cheaper"], "changed_mind"),
        ("go to drawr 2", ACTIONS, "go to drawer 2"),
    ],
)
def test_a_slip_in_form_finds_the_one_choice_it_means(value: str, choices: list[str], near: str) -> None:
    """Case, articles, punctuation, prepositions, left-out numbers and spelling slips are seen through."""
    assert near_match(value, choices) == near


@pytest.mark.parametrize(
    ("value", "choices"),
    [
        ("go to drawer", ACTIONS),
        ("go to drawer 3", ACTIONS),
        ("turn off fridge 1", ACTIONS),
        ("active", ["inactive", "closed"]),
        ("move box from table", ["move box to table"]),
        ("", ACTIONS),
        ("???", ACTIONS),
        ("Open fridge 1", ["open fridge 1", "OPEN fridge 1"]),
    ],
)
def test_an_ambiguous_or_different_value_has_no_near_choice(value: str, choices: list[str]) -> None:
    """Several fits, other numbers, other verbs and opposites give None rather than a guess."""
    assert near_match(value, choices) is None
