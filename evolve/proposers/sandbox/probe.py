"""Looks out of a sandbox before anybody is trusted to it: what can be seen from in there that must not be?"""

from __future__ import annotations

import json
import os
import secrets
import socket
import subprocess
import tempfile
from pathlib import Path

from evolve.proposers.sandbox import kit
from evolve.proposers.sandbox.room import Room, Sandbox

_TIMEOUT_S = 60.0
_LOOK_OUT = """
import json, os, socket, sys
outside, writable, host, port = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
def tried(act):
    try:
        return act() or True
    except OSError:
        return False
def read(path):
    with open(path, "rb") as file:
        return file.read(1)
def write(path):
    with open(path, "w") as file:
        file.write("x")
seen = {
    "files outside": tried(lambda: read(outside)),
    "other processes": tried(lambda: read(f"/proc/{host}/environ")) or tried(lambda: os.kill(host, 0)),
    "the network": tried(lambda: socket.create_connection(("127.0.0.1", port), 2)),
}
tried(lambda: write(outside + ".new"))  # whether it got there is seen from outside
write(os.path.join(writable, "done"))
print(json.dumps([what for what, is_seen in seen.items() if is_seen]))
"""


def what_is_wrong(sandbox: Sandbox) -> str:
    """Return why a sandbox cannot be trusted on this machine; empty where it holds."""
    with tempfile.TemporaryDirectory(prefix="evolve-probe-") as scratch, socket.create_server(("127.0.0.1", 0)) as ear:
        top = Path(os.path.realpath(scratch))
        outside, inside = top / "outside", top / "inside"
        inside.mkdir()
        outside.write_text(secrets.token_hex(8), "ascii")
        port = ear.getsockname()[1] if sandbox.has_own_loopback else 1  # elsewhere the gateway is on 127.0.0.1
        look = [str(kit.interpreter()), kit.ISOLATED, "-c", _LOOK_OUT]
        room = Room(inside, (inside,), readable=kit.interpreter_places(), hidden=kit.package_folders())
        command = sandbox.wrap([*look, str(outside), str(inside), str(os.getpid()), str(port)], room)
        try:
            ended = subprocess.run(
                command, capture_output=True, text=True, timeout=_TIMEOUT_S, stdin=subprocess.DEVNULL, check=False
            )
        except OSError as error:
            return f"it does not start: {error}"
        except subprocess.TimeoutExpired:
            return f"it did not start within {_TIMEOUT_S:g} s"
        if ended.returncode != 0:
            return f"it does not start: {_last_line(ended.stderr) or f'exit code {ended.returncode}'}"
        is_written = outside.with_name("outside.new").exists()
        seen = [*json.loads(ended.stdout), *(["the file system, for writing"] if is_written else [])]
        return f"from inside one can reach {', '.join(seen)}" if seen else ""


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return "".join(letter for letter in lines[-1] if letter.isprintable())[:200] if lines else ""
