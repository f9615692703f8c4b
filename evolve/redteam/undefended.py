"""Plays hostile rules in a plain child process, as rule code runs where nobody shuts it in. Standard library only.

    python undefended.py < BODIES

BODIES is a JSON list of pairs: the body of a rule and its `view.text`. Each is played in a fork. The last line
of the answer is a JSON list of what each returned.
"""

import ctypes  # noqa: F401  rules find these modules in sys.modules
import json
import mmap  # noqa: F401
import os
import re
import signal
import socket  # noqa: F401
import sys
import threading  # noqa: F401
import time  # noqa: F401
from types import SimpleNamespace

TIMEOUT_S = 10


def played(body: str, text: str) -> str:
    """Play one rule in a fork and return what it said."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(TIMEOUT_S)
        os.write(writing, said(body, text).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as answer:
        told = answer.read()
    os.waitpid(child, 0)
    return told.decode(errors="replace")


def said(body: str, text: str) -> str:
    """Return what a rule returns, or how it failed."""
    lines = "".join(f"    {line}\n" for line in body.strip("\n").splitlines())
    names = {"re": re, "sys": sys, "os": os, "Block": str, "PASS": "", "view": SimpleNamespace(text=text)}
    try:
        exec(f"def rule():\n{lines}", names)  # noqa: S102  that is what this process is for
        return str(names["rule"]())  # type: ignore[operator]
    except Exception as error:
        return f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    said_by_each = [played(body, text) for body, text in json.load(sys.stdin)]
    print(f"\n{json.dumps(said_by_each)}")  # on a line of its own: a rule may have written here
