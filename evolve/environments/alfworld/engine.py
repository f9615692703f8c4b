"""Plays games with upstream's engine. Runs in a child process and knows nothing of `evolve`; see `children.main`."""

from __future__ import annotations

from typing import Any

import textworld
from alfworld.agents.environment.alfred_tw_env import AlfredDemangler

_WANTED = textworld.EnvInfos(won=True, admissible_commands=True)
_table: list[Any] = []
"""The one game of this process, once there is one: the engine takes another game but is never torn down."""


def answer(question: dict[str, str]) -> dict[str, Any]:
    """Start the game in the file `load`, or give the command `act` to the one that is on."""
    if "load" in question:
        return _seen(_load(question["load"]).reset())
    state, _, _ = _table[0].step(question["act"])
    return _seen(state)


def _load(path: str) -> Any:
    if _table:
        _table[0].load(path)
    else:
        _table.append(textworld.start(path, _WANTED, wrappers=[AlfredDemangler()]))
    return _table[0]


def _seen(state: Any) -> dict[str, Any]:
    return {"text": state.feedback, "admissible": list(state.admissible_commands), "won": bool(state.won)}
