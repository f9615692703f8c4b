"""Makes a configuration of merged values. What is wrong is said with the key, its source and the nearest known key."""

from __future__ import annotations

import difflib
import inspect
import math
from collections.abc import Iterable, Iterator, Mapping
from types import NoneType
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from evolve.config.sections import Config
from evolve.dotted import flatten
from evolve.errors import ConfigError

NEAR = 0.7
"""Share of letters in common from which a name counts as a slip of another one."""


def validate(tree: Mapping[str, Any], sources: Mapping[str, str]) -> Config:
    """Return the configuration that a tree of values makes; `sources` is by dotted key.

    Raises:
        ConfigError: a value is not as its key wants it, or there is no such key.
    """
    try:
        config = Config.model_validate(_with_unset(tree, Config))
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        told = _no_such_key(key) if first["type"] == "extra_forbidden" else first["msg"].removeprefix("Value error, ")
        raise ConfigError(f"{key} (from {_source_of(key, sources)}): {told}") from error
    for key, value in flatten(tree).items():
        if not _is_finite(value):  # in a table whose keys are not ours
            raise ConfigError(f"{key} (from {_source_of(key, sources)}): numbers are finite, not {value}")
    return config


def _is_finite(value: Any) -> bool:
    """Return whether all numbers in a value are finite."""
    if isinstance(value, Mapping):
        return all(map(_is_finite, value.values()))
    if isinstance(value, list):
        return all(map(_is_finite, value))
    return not isinstance(value, float) or math.isfinite(value)


def _with_unset(tree: Mapping[str, Any], table: type[BaseModel]) -> dict[str, Any]:
    """Return the tree with None in place of each empty text whose key may be not set; TOML has no null."""
    found = dict(tree)
    for name, info in table.model_fields.items():
        value, kinds = found.get(name), get_args(info.annotation)
        inner = _table_in(info.annotation)
        if value == "" and NoneType in kinds:
            found[name] = None
        elif inner is not None and isinstance(value, Mapping):
            found[name] = _with_unset(value, inner)
    return found


def _table_in(annotation: Any) -> type[BaseModel] | None:
    """Return the table that a field holds, also where it may be not set; None where it holds a value."""
    kinds = get_args(annotation) or (annotation,)
    return next((kind for kind in kinds if inspect.isclass(kind) and issubclass(kind, BaseModel)), None)


def _source_of(key: str, sources: Mapping[str, str]) -> str:
    """Return who set a key: by itself, in a table below it, or with the whole of a table around it."""
    related = (s for k, s in sources.items() if k.startswith(f"{key}.") or key.startswith(f"{k}."))
    return sources.get(key) or next(related, "default")


def _no_such_key(key: str) -> str:
    """Say so, and which known key may be meant: its last part is near, and one of the same table comes first."""
    known = list(_known_keys(Config))
    siblings = [other for other in known if _table_of(other) == _table_of(key)]
    with_that_word = (other for other in siblings if _last_of(key) in _last_of(other).split("_"))
    near = _nearest(key, siblings) or next(with_that_word, None) or _nearest(key, known)
    return f"no such key; the nearest is {near}" if near else "no such key; docs/configuration.md lists all"


def _nearest(key: str, known: Iterable[str]) -> str | None:
    """Return the first of the keys whose last part is the nearest; None where none is near."""
    by_last = {_last_of(other): other for other in reversed(list(known))}
    near = difflib.get_close_matches(_last_of(key), by_last, n=1, cutoff=NEAR)
    return by_last[near[0]] if near else None


def _table_of(key: str) -> str:
    return key.rpartition(".")[0]


def _last_of(key: str) -> str:
    return key.rpartition(".")[2]


def _known_keys(table: type[BaseModel], prefix: str = "") -> Iterator[str]:
    """Yield the keys of a table, and those of the tables in it after them."""
    for name, info in table.model_fields.items():
        yield f"{prefix}{name}"
        if inner := _table_in(info.annotation):
            yield from _known_keys(inner, f"{prefix}{name}.")
