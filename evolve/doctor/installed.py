"""What is installed on this machine: Python, git, SQLite, and what the extras of the package bring."""

from __future__ import annotations

import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata

from evolve.doctor.finding import Finding

DISTRIBUTION = "evolve-harness"
OLDEST_PYTHON = (3, 11)
OLDEST_GIT = (2, 28)
SAFE_SQLITE = (3, 51, 3)


def python() -> Finding:
    """Look at the interpreter."""
    detail = ".".join(str(part) for part in sys.version_info[:3])
    if sys.version_info[:2] >= OLDEST_PYTHON:
        return Finding(name="python", status="ok", detail=detail)
    return Finding(name="python", status="missing", detail=detail, mend="install Python 3.11 or newer", blocks=True)


def git() -> Finding:
    """Look for git."""
    mend = f"install git {'.'.join(map(str, OLDEST_GIT))} or newer"
    if shutil.which("git") is None:
        return Finding(name="git", status="missing", detail="not on PATH", mend=mend, blocks=True)
    said = subprocess.run(["git", "--version"], capture_output=True, text=True, check=False).stdout.strip()
    found = re.search(r"(\d+)\.(\d+)", said)
    is_recent = found is not None and (int(found[1]), int(found[2])) >= OLDEST_GIT
    return Finding(name="git", status="ok" if is_recent else "warn", detail=said, mend="" if is_recent else mend)


def extras() -> Iterator[Finding]:
    """Look for what each optional extra of the package brings; `dev` is for this project's own tests."""
    about = metadata.metadata(DISTRIBUTION)
    for extra in sorted(set(about.get_all("Provides-Extra") or ()) - {"dev"}):
        required = [
            line for line in metadata.requires(DISTRIBUTION) or () if re.search(rf"extra == ['\"]{extra}['\"]", line)
        ]
        absent = [name for name in map(_distribution, required) if not _is_installed(name)]
        detail = f"{', '.join(absent)} not installed" if absent else ", ".join(map(_distribution, required))
        mend = f"pip install '{DISTRIBUTION}[{extra}]'" if absent else ""
        yield Finding(name=f"extra {extra}", status="missing" if absent else "ok", detail=detail, mend=mend)


def _distribution(requirement: str) -> str:
    """Return the name at the beginning of a requirement."""
    return re.split(r"[^A-Za-z0-9_.-]", requirement, maxsplit=1)[0]


def _is_installed(name: str) -> bool:
    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        return False
    return True


def sqlite() -> Finding:
    """Look at the library that the ledger is written with."""
    detail = sqlite3.sqlite_version
    if sqlite3.sqlite_version_info >= SAFE_SQLITE:
        return Finding(name="sqlite", status="ok", detail=detail)
    safe = ".".join(map(str, SAFE_SQLITE))
    detail += f": before {safe} two writers at once could, rarely, damage a ledger; evolve lets one write"
    return Finding(name="sqlite", status="warn", detail=detail, mend=f"a Python built with SQLite {safe} or newer")
