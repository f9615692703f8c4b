"""JSON values that rules may read like dicts and lists but not change, and JSON values checked on the way out."""

import math
from collections.abc import Mapping
from typing import Any, NoReturn

MAX_DEPTH = 16
MAX_INT = 2**63


def _refuse(self: object, *args: object, **kwargs: object) -> NoReturn:
    raise TypeError("what a rule is shown cannot be changed; make a copy: dict(x), list(x)")


class FrozenDict(dict[str, Any]):
    """A dict without methods that change it."""

    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _refuse


class FrozenList(list[Any]):
    """A list without methods that change it."""

    __setitem__ = __delitem__ = __iadd__ = __imul__ = append = clear = extend = insert = pop = _refuse
    remove = reverse = sort = _refuse


def freeze(value: Any) -> Any:
    """Return a JSON value in its unchangeable form."""
    if isinstance(value, dict):
        return FrozenDict((key, freeze(item)) for key, item in value.items())
    if isinstance(value, list):
        return FrozenList(map(freeze, value))
    return value


def plain(value: Any, depth: int = 0) -> Any:
    """Return a copy made of built-in JSON types only.

    Raises:
        ValueError: the value is no JSON, is nested too deeply, or holds a number that JSON has no word for.
    """
    if depth > MAX_DEPTH:
        raise ValueError(f"nested deeper than {MAX_DEPTH}")
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int) and -MAX_INT <= value < MAX_INT:
        return int(value)
    if isinstance(value, float) and math.isfinite(value):
        return float(value)
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item, depth + 1) for item in value]
    raise ValueError(f"{type(value).__name__} is not plain JSON")
