"""Shuts coding agents in: the workspace, the evidence and the model's own endpoint are there, nothing else is.

A sandbox is used after a self-test has looked out of it; without one a run says UNPROTECTED.
"""

from evolve.proposers.sandbox.enclosure import Enclosure, Entered
from evolve.proposers.sandbox.room import OPEN_NETWORK, Room, Sandbox
from evolve.proposers.sandbox.search import MEND, OUTSIDE, UNPROTECTED, Found, SandboxMode, choose_sandbox, find_sandbox

__all__ = [
    "MEND",
    "OPEN_NETWORK",
    "OUTSIDE",
    "UNPROTECTED",
    "Enclosure",
    "Entered",
    "Found",
    "Room",
    "Sandbox",
    "SandboxMode",
    "choose_sandbox",
    "find_sandbox",
]
