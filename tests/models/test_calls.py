"""Calls as a model writes them."""

import pytest

from evolve.models.calls import read_call
from evolve.records import Call


def nested(levels: int) -> str:
    return '{"x": ' + "[" * levels + "]" * levels + "}"


@pytest.mark.parametrize("levels", [150, 400, 1500])
def test_arguments_nested_without_end_are_none(levels: int) -> None:
    """What could be read and not be kept again is a malformed call, and its text is kept."""
    proposed = read_call("c", "tool", nested(levels))
    assert proposed.arguments is None
    assert proposed.arguments_text == nested(levels)


def test_deep_arguments_are_kept() -> None:
    """Whatever is read as arguments can be written out."""
    arguments = read_call("c", "tool", nested(90)).arguments
    assert arguments is not None
    assert Call.model_validate_json(Call(tool="t", arguments=arguments).model_dump_json()).arguments == arguments
