"""What a shut-in program may reach, and what a sandbox is. Everything that a room does not name is not there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

OPEN_NETWORK = "*"
"""In the hosts of an agent's row: any host may be reached, the services of this machine included."""


@dataclass(frozen=True, slots=True)
class Room:
    """What a program gets beside the system's own folders.

    Args:
        folder: its working folder.
        writable: folders that it may change.
        readable: files and folders that it may read, each at its own place.
        hidden: places that stay shut also where a system folder or a readable one holds them.
        restored: files and folders that are readable although something hidden holds them.
        has_network: True opens the whole network, this machine's own services included.
    """

    folder: Path
    writable: tuple[Path, ...]
    readable: tuple[Path, ...] = ()
    hidden: tuple[Path, ...] = ()
    restored: tuple[Path, ...] = ()
    has_network: bool = False


class Sandbox(Protocol):
    """One way of shutting a program in."""

    @property
    def name(self) -> str:
        """What stands in records and reports."""

    @property
    def has_own_loopback(self) -> bool:
        """True where 127.0.0.1 inside is not the machine's own; the way out is then a socket in a folder."""

    def wrap(self, command: Sequence[str], room: Room) -> list[str]:
        """Return the command that runs `command` in a room."""
