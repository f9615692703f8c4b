"""Coding agents, and what shuts them in."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping

from evolve.config import Config
from evolve.doctor.finding import Finding
from evolve.errors import ConfigError
from evolve.proposers.agents import AgentRow, home_of, known_rows, place_of, shipped_rows
from evolve.proposers.sandbox import MEND, OUTSIDE, find_sandbox


def agents(config: Config, environ: Mapping[str, str]) -> Iterator[Finding]:
    """Look for the program of each coding agent."""
    try:
        rows = known_rows(config.proposer.agents_file)
    except ConfigError as error:
        rows = shipped_rows()
        if config.proposer.kind != "command":  # else a run refuses for it
            yield Finding(name="agents", status="warn", detail=str(error), mend="mend that file")
    for row in rows.values():
        program = shutil.which(row.program, path=environ.get("PATH"))
        if program is None:
            detail = f"{row.program} is not on PATH"
            yield Finding(name=f"agent {row.name}", status="missing", detail=detail, mend=row.install)
        elif not _has_key_or_login(row, environ):
            detail = f"{program}; no key and no login of it is here: a run would find out when it is asked for a patch"
            mend = f"set {' or '.join(row.keys)}, or log in with it" if row.keys else "log in with it"
            yield Finding(name=f"agent {row.name}", status="warn", detail=detail, mend=mend)
        else:
            yield Finding(name=f"agent {row.name}", status="ok", detail=program)


def _has_key_or_login(row: AgentRow, environ: Mapping[str, str]) -> bool:
    """Say whether one of its keys is set, or a file of its own settings is there; True where its row names neither."""
    files = (place_of(written, home_of(environ)) for written in row.copied)
    is_set = any(environ.get(name) for name in (*row.keys, *row.variables))
    return is_set or any(file.exists() for file in files) or not (row.keys or row.copied)


def proposer_sandbox(config: Config, environ: Mapping[str, str]) -> Finding:
    """Try to shut a program in as a coding agent would be. Where one is required a run refuses, not this."""
    name, mode = "proposer sandbox", config.proposer.sandbox
    is_needed = config.proposer.kind == "command"
    if mode == "off":
        told = f"UNPROTECTED: switched off. {OUTSIDE}" if is_needed else "switched off"
        return Finding(name=name, status="warn", detail=told, mend="--set proposer.sandbox=auto")
    found = find_sandbox(environ)
    if found.sandbox is not None:
        return Finding(name=name, status="ok", detail=f"{found.sandbox.name}; looked out of it and saw nothing")
    told = f"UNPROTECTED: coding agents run outside any sandbox ({found.reason}). {OUTSIDE}"
    return Finding(name=name, status="missing", detail=told, mend=MEND)
