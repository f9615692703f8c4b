"""The outer layer on macOS: the zygote, and with it every worker, starts under a sandbox-exec profile. NOT TESTED.

This project's tests run on Linux. On a Mac the self-test has to find the profile holding before the tier counts; what
stays open (the size of memory, names of files, signals to the zygote, which holds nothing) is listed with the tier.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

PROGRAM = "/usr/bin/sandbox-exec"
SYSTEM = ("/usr/lib", "/usr/share", "/System/Library", "/Library/Frameworks", "/private/var/db/timezone")
DEVICES = ("/dev/null", "/dev/random", "/dev/urandom")
SHUT = frozenset(
    {
        *("open a file", "list a directory", "read the parent's memory", "reach TCP", "reach UDP"),
        *("start a process", "run a program"),
    }
)
"""Probes of the self-test that must fail under the profile."""


def is_available() -> bool:
    """Tell whether this machine has it."""
    return sys.platform == "darwin" and Path(PROGRAM).exists()


def wrapped(command: Sequence[str], readable: Sequence[Path]) -> list[str]:
    """Return the command that runs `command` with nothing but `readable` and the system's libraries to read."""
    return [PROGRAM, "-p", profile(Path(command[0]), readable), *command]


def profile(program: Path, readable: Sequence[Path]) -> str:
    """Return the rules; of several that match, the last one decides."""
    real = program.resolve()
    return "\n".join(
        [
            "(version 1)",
            "(deny default)",
            "(allow process-fork sysctl-read file-read-metadata)",
            "(allow signal (target same-sandbox))",
            f"(allow process-exec (literal {_quoted(program)}) (literal {_quoted(real)}))",
            _reading([*map(Path, (*SYSTEM, *DEVICES)), program, real, *readable]),
            '(allow file-write-data (literal "/dev/null"))',
        ]
    )


def _reading(places: Sequence[Path]) -> str:
    named = dict.fromkeys(path for place in places for path in (place, place.resolve()))
    return f"(allow file-read* {' '.join(f'(subpath {_quoted(place)})' for place in named)})"


def _quoted(place: Path) -> str:
    return json.dumps(str(place), ensure_ascii=False)
