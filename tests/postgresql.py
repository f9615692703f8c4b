"""Starts a PostgreSQL of one's own from the installed binary: data in a folder, a socket, no network."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

SERVANT = "postgres"  # the server refuses to run as root


def program(name: str) -> str | None:
    """Return the path of a server program; Debian keeps them beside PATH, a folder for each version."""
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return shutil.which(name) or shutil.which(name, path=os.pathsep.join(map(str, places)))


def why_not() -> str:
    """Return why no server can be started here; nothing where one can."""
    if not (program("initdb") and program("postgres")):
        return "no PostgreSQL server is installed (Debian: apt install postgresql)"
    if os.geteuid() == 0 and SERVANT not in {user.pw_name for user in pwd.getpwall()}:
        return f"PostgreSQL does not run as root, and there is no user {SERVANT}"
    return ""


@dataclass
class PostgreSQL:
    """A server that runs, with its socket in a folder."""

    folder: Path
    databases: int = 0

    def new_database(self) -> str:
        """Make an empty database and return its URL."""
        import psycopg

        self.databases += 1
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE d{self.databases}")
        return self.url(f"d{self.databases}")

    def url(self, database: str) -> str:
        """Return the URL of a database."""
        return f"postgresql://evolve@/{database}?host={quote(str(self.folder), safe='')}"


@contextmanager
def running_postgresql() -> Iterator[PostgreSQL]:
    """Start a server in a folder of its own, and stop it."""
    folder = Path(tempfile.mkdtemp(prefix="evolve-pg-", dir="/tmp"))  # short, and its user may enter it
    who: dict[str, Any] = {"cwd": folder, "env": {**os.environ, "LC_ALL": "C"}}
    if os.geteuid() == 0:
        servant = pwd.getpwnam(SERVANT)
        os.chown(folder, servant.pw_uid, servant.pw_gid)
        who |= {"user": servant.pw_uid, "group": servant.pw_gid, "extra_groups": []}
    rows = folder / "rows"
    try:
        made = [str(program("initdb")), "-D", str(rows), "-U", "evolve", "-A", "trust", "-E", "UTF8", "--no-sync"]
        ended = subprocess.run(made, check=False, capture_output=True, text=True, **who)
        assert ended.returncode == 0, ended.stderr
        quick = ["-c", "listen_addresses=", "-c", f"unix_socket_directories={folder}", "-c", "fsync=off"]
        with (folder / "log").open("wb") as log:
            start = [str(program("postgres")), "-D", str(rows), *quick]
            process = subprocess.Popen(start, stdout=log, stderr=log, **who)
        try:
            _wait_for(folder, process)
            yield PostgreSQL(folder)
        finally:
            process.send_signal(signal.SIGINT)  # does not wait for clients that are still there
            process.wait(timeout=60)
    finally:
        shutil.rmtree(folder)


def _wait_for(folder: Path, process: subprocess.Popen[bytes]) -> None:
    for _ in range(1200):
        if "ready to accept connections" in (folder / "log").read_text():
            return
        if process.poll() is not None:
            break
        time.sleep(0.05)
    raise RuntimeError(f"PostgreSQL did not start: {(folder / 'log').read_text()[-1000:]}")
