"""Nested tables as one table with dotted keys, as configurations are told and compared, and as assignments."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

_BARE = re.compile(r"(?!(?:true|false|inf|nan)$)[A-Za-z_][\w./-]*", re.ASCII)
"""A text that TOML would not read as another value; whoever takes assignments takes it without quotes."""


def flatten(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return the values by dotted key. An empty table is a value, and so is one with a dot in a key of its own."""
    flat: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, Mapping) and value and not any("." in name for name in value):
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def assignments(table: Mapping[str, Any]) -> Iterator[str]:
    """Yield `key.path=value` for each value, as --set takes it."""
    for key, value in flatten(table).items():
        yield f"{key}={_written(value)}"


def _written(value: Any) -> str:
    """Return a value as TOML, a text that needs no quotes without them."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_quoted(key)} = {_quoted(one)}' for key, one in value.items())}}}"
    return value if isinstance(value, str) and _BARE.fullmatch(value) else _quoted(value)


def _quoted(value: Any) -> str:
    if isinstance(value, Mapping):
        return _written(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_quoted, value))}]"
    return json.dumps(value, ensure_ascii=False)
