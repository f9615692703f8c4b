"""A table of a database that many sessions share: a row is copied when a session first gets hold of it to change it.

Reading tools get the shared rows themselves, which is why only tools that upstream marks as reading may run while
`is_reading` is set. pydantic serialises a dict from its storage, so a session's own rows are what it sees.
"""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, Mapping, ValuesView
from copy import deepcopy
from typing import Any, NoReturn

from evolve.errors import EnvironmentBroken


class Rows(dict[str, Any]):
    """The rows of one table as one session has them.

    Args:
        shared: the rows of all sessions; never changed here.
    """

    def __init__(self, shared: Mapping[str, Any]) -> None:
        super().__init__(shared)
        self.shared = shared
        self.is_reading = False
        self._own: set[str] = set()

    def __getitem__(self, key: str) -> Any:
        if not self.is_reading and key in self and key not in self._own:
            self[key] = deepcopy(super().__getitem__(key))
        return super().__getitem__(key)

    def __setitem__(self, key: str, row: Any) -> None:
        self._own.add(key)
        super().__setitem__(key, row)

    def __delitem__(self, key: str) -> None:
        self._own.add(key)
        super().__delitem__(key)

    def get(self, key: str, default: Any = None) -> Any:
        """Return a row, or the default where there is none."""
        return self[key] if key in self else default  # noqa: SIM401  dict.get would hand out the shared row

    def values(self) -> ValuesView[Any]:  # type: ignore[override]  # dict's own view is narrower
        """Return all rows; to change them, all are copied."""
        self._own_all()
        return super().values()

    def items(self) -> ItemsView[str, Any]:  # type: ignore[override]  # dict's own view is narrower
        """Return all keys and rows; to change them, all are copied."""
        self._own_all()
        return super().items()

    def touched(self) -> Iterator[tuple[str, Any, Any]]:
        """Yield key, present row and shared row (None: absent) of what this session may have changed."""
        for key in sorted(self._own):
            yield key, dict.get(self, key), self.shared.get(key)

    def _own_all(self) -> None:
        if not self.is_reading:
            for key in self:
                self[key]

    def _refused(self, *_: object, **__: object) -> NoReturn:
        raise EnvironmentBroken("a tool changed a table in a way that sessions which share it cannot follow")

    pop = popitem = setdefault = update = clear = copy = __ior__ = _refused
