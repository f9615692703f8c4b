"""Nested tables as one table with dotted keys, as configurations are told and compared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def flatten(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return the values by dotted key. An empty table is a value, and so is one with a dot in a key of its own."""
    flat: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, Mapping) and value and not any("." in name for name in value):
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat
