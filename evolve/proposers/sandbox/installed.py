"""Finds what a program needs of the place where it is installed, which is often the user's home."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

_LONGEST_FIRST_LINE = 512
_MOST_LINKS = 8


def places_of(program: str, path: str) -> tuple[Path, ...]:
    """Return the files and folders without which a program does not start, beside what the system brings.

    Its own file, where links lead to, the `node_modules` that it lies in, the interpreter that its first line names.

    Args:
        program: where the program is.
        path: the PATH on which its first line's interpreter is looked for.
    """
    found = dict.fromkeys(_follow(canonical(Path(program)), path, depth=0))
    return tuple(place for place in found if not place.is_relative_to("/usr") and place.exists())


def canonical(program: Path) -> Path:
    """Return a path whose folders are no links; the file itself may be one."""
    return program.parent.resolve() / program.name


def _follow(program: Path, path: str, *, depth: int) -> Iterator[Path]:
    real = program.resolve()
    yield program
    for _ in range(_MOST_LINKS):
        if not program.is_symlink():
            break
        program = canonical(program.parent / program.readlink())
        yield program
    if "node_modules" in real.parts:
        yield Path(*real.parts[: real.parts.index("node_modules") + 1])
    if depth < 2 and (named := _interpreter(real)) and (found := shutil.which(named, path=path)):
        yield from _follow(Path(found), path, depth=depth + 1)  # where PATH leads to, link or not


def _interpreter(file: Path) -> str:
    """Return the interpreter that a script's first line names; empty for other files."""
    try:
        with file.open("rb") as stream:
            first = stream.readline(_LONGEST_FIRST_LINE)
    except OSError:
        return ""
    if not first.startswith(b"#!"):
        return ""
    words = [word for word in shlex.split(os.fsdecode(first[2:])) if not word.startswith("-")]
    is_through_env = bool(words) and Path(words[0]).name == "env"
    return words[1] if is_through_env and len(words) > 1 else words[0] if words else ""
