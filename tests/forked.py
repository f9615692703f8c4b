"""Processes that come from a server which has imported everything, so that a start is a fork and not two seconds."""

from __future__ import annotations

import multiprocessing
import os
import sys
from multiprocessing import forkserver
from multiprocessing.context import ForkServerContext

IMPORTED = ("small_run", "watched", "story")
"""One list for all tests: a process has one such server, and the first that asks for it decides."""


def processes() -> ForkServerContext:
    """Start the server where it does not run yet.

    Until Python 3.13 it imports before it is told where its parent finds modules, and passes over what it does not
    find; so it is told by the variable.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*IMPORTED])
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    try:
        forkserver.ensure_running()
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before
    return context
