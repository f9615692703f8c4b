"""Starts a MariaDB of one's own from the installed binary: data in a folder, a socket, no network."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from getpass import getuser
from pathlib import Path
from urllib.parse import quote

PROGRAMS = ("mariadb-install-db", "mariadbd")
SEARCHED = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def program(name: str) -> str | None:
    """Return the path of a server program; it often lies in /usr/sbin, which is on root's PATH only."""
    return shutil.which(name) or shutil.which(name, path=SEARCHED)


@contextmanager
def running_mariadb(folder: Path) -> Iterator[str]:
    """Start a server on a socket in a folder, yield its URL, and stop it."""
    rows, socket = folder / "rows", folder / "s"
    common = ["--no-defaults", f"--datadir={rows}", f"--user={getuser()}"]
    installer, server = (str(program(name)) for name in PROGRAMS)
    install = [installer, *common, "--auth-root-authentication-method=normal", "--skip-test-db"]
    subprocess.run(install, check=True, capture_output=True)
    quick = ["--innodb-flush-log-at-trx-commit=0", "--innodb-flush-method=nosync", "--innodb-fast-shutdown=2"]
    start = [server, *common, f"--socket={socket}", f"--pid-file={folder / 'pid'}", "--skip-networking", *quick]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(start, stdout=log, stderr=log)
    try:
        _wait_for(socket, process)
        yield f"mysql://root@localhost/?unix_socket={quote(str(socket))}"
    finally:
        process.terminate()
        process.wait(timeout=60)


def _wait_for(socket: Path, process: subprocess.Popen[bytes]) -> None:
    for _ in range(1200):
        if socket.exists():
            return
        if process.poll() is not None:
            break
        time.sleep(0.05)
    raise RuntimeError(f"MariaDB did not start: {(socket.parent / 'log').read_text()[-1000:]}")
