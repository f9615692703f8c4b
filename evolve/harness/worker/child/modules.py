"""Which modules rules may import, and what has to be loaded before a worker loses the right to open files."""

import codecs
import importlib
import os

from evolve.rules import ALLOWED

LAZY = ("warnings", "types", "weakref", "linecache", "tokenize", "contextlib", "locale", "traceback", "inspect")
"""What the allowed modules import inside their functions, but for the doctest of their own test runs: it brings
debugger, command line and unittest along, and each fork would pay for their memory."""

CODECS = (
    "ascii",
    "cp1252",
    "latin-1",
    "raw_unicode_escape",
    "unicode_escape",
    "utf-16",
    "utf-16-le",
    "utf-32",
    "utf-8-sig",
)
"""Codecs are modules too, and `encode` imports them on first use."""


def preload() -> None:
    """Import everything that rules can reach by an allowed name. `evolve.rules` must be registered already.

    `statistics` brings `random` along, which each fork would seed anew: a rule draws the same in every episode instead.
    """
    os.register_at_fork, register = lambda **hooks: None, os.register_at_fork
    try:
        for name in ALLOWED + LAZY:
            importlib.import_module(name)
    finally:
        os.register_at_fork = register
    importlib.import_module("random").seed(0)
    for name in CODECS:
        codecs.lookup(name)
