"""Runs a command and turns whatever it raises into one line for people and an exit code for programs."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from io import TextIOWrapper
from typing import Any, TextIO, cast

from evolve.cli.codes import DONE, INFRASTRUCTURE, INTERRUPTED, OUR_BUG, USAGE
from evolve.disk import MENDING
from evolve.errors import EvolveError, Interrupted, UserError

DEBUG = "EVOLVE_DEBUG"
REPORT = "this is a fault of evolve; set EVOLVE_DEBUG=1 to see where, and report it with that output"


def run_command(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code; nothing but SystemExit gets out."""
    _fill_closed_streams()
    stream = sys.stderr
    sys.stderr = cast("TextIO", _Forgiving(stream))
    try:
        return _run(arguments)
    finally:
        sys.stderr = stream


def _run(arguments: Sequence[str]) -> int:
    try:
        from evolve.cli.app import command

        command()(list(arguments), prog_name="evolve")
    except SystemExit as end:
        if end.code == INTERRUPTED:  # so the command line's library tells of Ctrl-C
            print(f"evolve: {explain(KeyboardInterrupt())}", file=sys.stderr)
        return _code_of(end)
    except (Exception, KeyboardInterrupt) as error:
        error = _of_a_lost_folder() if isinstance(error, FileNotFoundError) and not _is_somewhere() else error
        print(f"evolve: {explain(error)}", file=sys.stderr)
        if os.environ.get(DEBUG):
            traceback.print_exception(error)
        return exit_code(error)
    return DONE


class _Forgiving:
    """Standard error that is lost once it takes no more: full, or read by nobody. Work goes on as if it were closed."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write, or lose it."""
        try:
            written = self._stream.write(text)
            self._stream.flush()
        except OSError:
            self._stream = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  for as long as the process lives
            return len(text)
        return written

    def flush(self) -> None:
        """Do nothing: what was written is flushed."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _fill_closed_streams() -> None:
    """Put the null device in place of standard streams that are closed, lest a file that is opened takes their number.

    What goes to standard error is lost then, as was asked for; a result for standard output stays an error.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(descriptor)
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a letter that it cannot hold costs no result
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  for as long as the process lives


def _is_somewhere() -> bool:
    try:
        return bool(os.getcwd())
    except FileNotFoundError:
        return False


def _of_a_lost_folder() -> UserError:
    return UserError("the current folder was deleted; `cd` to one that is there")


def exit_code(error: BaseException) -> int:
    """Return the exit code of an error.

    2 the user's, 4 the world's, 5 a spent budget, 6 a broken seal, 130 an interruption, 1 ours.
    """
    if isinstance(error, EvolveError):
        return error.exit_code
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    if isinstance(error, OSError) and error.errno in MENDING:
        return INFRASTRUCTURE
    return OUR_BUG


def explain(error: BaseException) -> str:
    """Return an error as one line that says what to do."""
    if isinstance(error, EvolveError):
        return str(error)
    if isinstance(error, KeyboardInterrupt):
        return str(Interrupted("interrupted; what was recorded is kept"))
    if isinstance(error, OSError) and error.errno in MENDING:
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{MENDING[error.errno]}"
    return f"{type(error).__name__}: {error}; {REPORT}"


def _code_of(end: SystemExit) -> int:
    if end.code is None:
        return DONE
    return end.code if isinstance(end.code, int) else USAGE
