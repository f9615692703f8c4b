"""The sandbox of macOS, through sandbox-exec. NOT TESTED by this project's own tests, which run on Linux.

Before it is used its self-test must hold on the machine in question, as for every sandbox.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from evolve.proposers.sandbox.room import Room

PROGRAM = "/usr/bin/sandbox-exec"
SYSTEM = ("/usr", "/bin", "/sbin", "/System", "/Library", "/opt/homebrew", "/private/var/db/timezone")
SETTINGS = ("/private/etc/ssl", "/private/etc/passwd", "/private/etc/hosts", "/private/etc/localtime")
DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom", "/dev/tty")


class Seatbelt:
    """The sandbox of macOS. File names outside the room can be looked up there, their contents cannot be read."""

    name = "sandbox-exec (not tested)"
    has_own_loopback = False

    def wrap(self, command: Sequence[str], room: Room) -> list[str]:
        """Return the command that runs `command` in a room."""
        return [PROGRAM, "-p", "\n".join(_profile(room)), *command]


def _profile(room: Room) -> Iterator[str]:
    """Yield the rules; of several that match, the last one decides."""
    yield "(version 1)"
    yield "(deny default)"
    yield "(allow process-exec process-fork)"
    yield "(allow signal (target same-sandbox))"
    yield "(allow sysctl-read mach-lookup file-read-metadata)"
    yield _rule("allow file-read*", [Path(place) for place in (*SYSTEM, *SETTINGS, *DEVICES)])
    yield _rule("allow file-write-data", [Path("/dev/null")])
    yield _rule("allow file-read*", room.readable)
    yield _rule("deny file-read* file-write*", [place for place in room.hidden if place not in room.readable])
    yield _rule("allow file-read*", [*_below_hidden(room), *room.restored])
    yield _rule("allow file-read* file-write*", room.writable)
    yield "(allow network*)" if room.has_network else '(allow network-outbound (remote ip "localhost:*"))'


def _below_hidden(room: Room) -> list[Path]:
    """Return what is to be read although it lies in a hidden folder, such as a program in the user's home."""
    return [place for place in room.readable if any(place.is_relative_to(hidden) for hidden in room.hidden)]


def _rule(action: str, places: Sequence[Path]) -> str:
    filters = " ".join(f"(subpath {json.dumps(str(place.resolve()), ensure_ascii=False)})" for place in places)
    return f"({action} {filters})" if filters else ""
