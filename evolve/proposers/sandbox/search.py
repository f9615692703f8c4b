"""Finds the sandbox of this machine and decides whether a run may begin without one."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from evolve.errors import ConfigError
from evolve.proposers.sandbox import bubblewrap, seatbelt
from evolve.proposers.sandbox.bubblewrap import Bubblewrap
from evolve.proposers.sandbox.probe import what_is_wrong
from evolve.proposers.sandbox.room import Sandbox
from evolve.proposers.sandbox.seatbelt import Seatbelt

SandboxMode = Literal["auto", "required", "off"]

MEND = "apt install bubblewrap (dnf, pacman: the same name), where user namespaces are allowed"

UNPROTECTED = "none"
"""What stands in the record of a candidate whose agent ran outside any sandbox."""

OUTSIDE = "It can read all that you can: held-out tasks, the ledger, the repository, keys in files; and reach any host."
"""What nobody who goes on without a sandbox may miss."""


@dataclass(frozen=True, slots=True)
class Found:
    """The sandbox that holds on this machine, or why there is none."""

    sandbox: Sandbox | None
    reason: str = ""


def find_sandbox(environ: Mapping[str, str] = os.environ) -> Found:
    """Look for a sandbox and try it."""
    sandbox = _candidate(environ)
    if isinstance(sandbox, str):
        return Found(None, sandbox)
    wrong = what_is_wrong(sandbox)
    return Found(None, f"{sandbox.name}: {wrong}") if wrong else Found(sandbox)


def choose_sandbox(mode: SandboxMode, environ: Mapping[str, str] = os.environ) -> Found:
    """Return the sandbox that a configuration asks for.

    Raises:
        ConfigError: one is required and none holds here.
    """
    if mode == "off":
        return Found(None, "switched off by proposer.sandbox")
    found = find_sandbox(environ)
    if found.sandbox is None and mode == "required":
        raise ConfigError(
            f"proposer.sandbox is required, and no sandbox holds here ({found.reason}); "
            '`evolve doctor` says what mends it, proposer.sandbox = "auto" goes on UNPROTECTED'
        )
    return found


def _candidate(environ: Mapping[str, str]) -> Sandbox | str:
    """Return the sandbox to try, or why there is none."""
    if platform.system() == "Darwin":
        return Seatbelt() if Path(seatbelt.PROGRAM).exists() else f"there is no {seatbelt.PROGRAM}"
    program = shutil.which(bubblewrap.PROGRAM, path=environ.get("PATH"))
    if program is None:
        return f"{bubblewrap.PROGRAM} is not on PATH"
    told = subprocess.run([program, "--help"], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    return Bubblewrap(program, options=told.stdout)
