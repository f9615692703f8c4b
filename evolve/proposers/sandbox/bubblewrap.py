"""Bubblewrap: namespaces of Linux without privileges. An empty root, into which a room's places are bound."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from evolve.proposers.sandbox.room import Room

PROGRAM = "bwrap"
ALIASES = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
SETTINGS = (
    *("alternatives", "ca-certificates", "ca-certificates.conf", "crypto-policies", "pki", "ssl"),
    *("group", "passwd", "nsswitch.conf", "localtime", "timezone"),
    *("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "services", "protocols"),
)
"""Of /etc: what programs need to start. The rest of it may hold passwords and keys."""
NAME_SERVICE = ("hosts", "host.conf", "gai.conf", "resolv.conf")
SCRATCH_BYTES = 2 * 1024**3


class Bubblewrap:
    """The sandbox of Linux.

    Args:
        program: where bwrap is.
        options: its help text; a release that lacks one of the finer options is used without it.
    """

    name = "bubblewrap"
    has_own_loopback = True

    def __init__(self, program: str, *, options: str) -> None:
        self._program = program
        self._no_nesting = ("--disable-userns",) if "--disable-userns" in options else ()
        self._size = ("--size", str(SCRATCH_BYTES)) if "--size" in options else ()

    def wrap(self, command: Sequence[str], room: Room) -> list[str]:
        """Return the command that runs `command` in a room."""
        return [
            *(self._program, "--die-with-parent", "--new-session", "--cap-drop", "ALL"),
            *("--unshare-user", *self._no_nesting, "--unshare-pid", "--unshare-ipc", "--unshare-uts"),
            *("--unshare-cgroup-try", *(() if room.has_network else ("--unshare-net",))),
            *("--proc", "/proc", "--dev", "/dev"),
            *(*self._size, "--tmpfs", "/tmp"),  # noqa: S108  a private one
            *_system(room),
            *_places(room),
            *("--remount-ro", "/"),
            *("--chdir", str(room.folder), "--", *command),
        ]


def _system(room: Room) -> Iterator[str]:
    yield from ("--ro-bind", "/usr", "/usr")
    for alias in map(Path, ALIASES):
        if alias.is_symlink():
            yield from ("--symlink", str(alias.readlink()), str(alias))
        elif alias.is_dir():
            yield from ("--ro-bind", str(alias), str(alias))
    for name in (*SETTINGS, *(NAME_SERVICE if room.has_network else ())):
        yield from ("--ro-bind-try", f"/etc/{name}", f"/etc/{name}")
    yield from _shut(room, Path("/usr"))


def _places(room: Room) -> Iterator[str]:
    """Bind from the top downwards, each place shut again where it holds something hidden."""
    for place in sorted({*room.readable}):
        if place.is_symlink() and place.is_file():  # a program may look for its files from where it really lies
            yield from () if _is_shown(room, place) else ("--symlink", str(place.readlink()), str(place))
        else:
            yield from ("--ro-bind", str(place), str(place))
            yield from _shut(room, place)
    for place in sorted({*room.restored}):
        yield from ("--ro-bind", str(place), str(place))
    for place in sorted({*room.writable}):
        yield from ("--bind", str(place), str(place))


def _is_shown(room: Room, link: Path) -> bool:
    """Say whether a link comes with a folder that is shown, as in the `.bin` of `node_modules`, or with the system."""
    if any(link.is_relative_to(alias) for alias in ALIASES):
        return True
    folders = [place for place in room.readable if place.is_dir() and link.is_relative_to(place)]
    hidden = [path.resolve() for path in room.hidden]
    return any(
        not any(shut.is_relative_to(folder) and link.is_relative_to(shut) for shut in hidden) for folder in folders
    )


def _shut(room: Room, place: Path) -> Iterator[str]:
    for hidden in sorted({path.resolve() for path in room.hidden}):
        if hidden.is_relative_to(place.resolve()) and hidden.is_dir():
            yield from ("--tmpfs", str(hidden))
        elif hidden.is_relative_to(place.resolve()) and hidden.exists():
            yield from ("--ro-bind", "/dev/null", str(hidden))
