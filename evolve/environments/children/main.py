"""What runs inside a child: reads a question a line, answers a line, and ends with its host, also while it computes.

It imports nothing of `evolve`, so a child is as light as its program. A program is a Python file with a function
`answer(question) -> reply`, both JSON objects; whatever it prints goes to the log. One that raises ends the child.
"""

from __future__ import annotations

import importlib.util
import json
import os
import select
import shutil
import sys
from contextlib import suppress
from threading import Thread


def serve(program: str, folder: str) -> None:
    """Answer until the host hangs up, then remove the child's folder, which nobody else may be there to do."""
    Thread(target=_end_with_host, args=(os.dup(0), folder), daemon=True).start()
    questions, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    silence = os.open(os.devnull, os.O_RDONLY)
    os.dup2(silence, 0)
    os.dup2(2, 1)  # an engine's own chatter, C code included, must not look like an answer
    try:
        spec = importlib.util.spec_from_file_location("program", program)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        with suppress(BrokenPipeError):  # the host is gone: there is nobody to tell
            for line in questions:
                replies.write(json.dumps(module.answer(json.loads(line))).encode() + b"\n")
                replies.flush()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _end_with_host(connection: int, folder: str) -> None:
    """Wait until the host is gone and end at once: an answer that is still being worked on has no reader."""
    line = select.poll()
    line.register(connection, select.POLLRDHUP)
    line.poll()
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)


if __name__ == "__main__":
    serve(*sys.argv[1:])
