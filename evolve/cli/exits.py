"""Runs a command and turns whatever it raises into one line for people, and for programs into an exit code.

With --json an error is a document too, unless a result stands on standard output already.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from typing import Any, TextIO, cast

from evolve.cli.codes import DONE, INFRASTRUCTURE, INTERRUPTED, OUR_BUG, USAGE
from evolve.cli.interrupts import ignore_interrupts
from evolve.disk import MENDING
from evolve.errors import EvolveError, Interrupted, UserError

AS_JSON = "--json"
DEBUG = "EVOLVE_DEBUG"
OURS, USAGE_ERROR = "evolve: ", "Error: "
"""What an error begins with on standard error: ours, and the command line library's."""
REPORT = "this is a fault of evolve; set EVOLVE_DEBUG=1 to see where, and report it with that output"


def run_command(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code; nothing but SystemExit gets out."""
    _fill_closed_streams()
    streams = sys.stdout, sys.stderr
    result, said = _Watched(sys.stdout), _Forgiving(sys.stderr)
    sys.stderr = cast("TextIO", said)
    if sys.stdout is not None:
        sys.stdout = cast("TextIO", result)
    try:
        code = _run(arguments)
        if code != DONE and AS_JSON in arguments and not result.is_begun:
            _show_error(code, said.last)
        return code
    finally:
        sys.stdout, sys.stderr = streams


def _run(arguments: Sequence[str]) -> int:
    try:
        from evolve.cli.app import command

        command()(list(arguments), prog_name="evolve")
    except SystemExit as end:
        ignore_interrupts()
        if end.code == INTERRUPTED:  # so the command line's library tells of Ctrl-C
            print(f"{OURS}{explain(KeyboardInterrupt())}", file=sys.stderr)
        return _code_of(end)
    except (Exception, KeyboardInterrupt) as error:
        ignore_interrupts()
        error = _of_a_lost_folder() if isinstance(error, FileNotFoundError) and not _is_somewhere() else error
        if os.environ.get(DEBUG):
            traceback.print_exception(error)
        from evolve.cli.output import visible

        print(visible(f"{OURS}{explain(error)}"), file=sys.stderr)
        return exit_code(error)
    return DONE


def _show_error(code: int, said: str) -> None:
    """Print an error as a document; where standard output takes nothing, the exit code tells."""
    from evolve.cli.output import show

    message = said.removeprefix(OURS).removeprefix(USAGE_ERROR)
    with suppress(EvolveError, OSError, SystemExit):
        show({"error": {"exit_code": code, "message": message}}, "", as_json=True)


class _Watched:
    """Standard output that knows whether something of a result stands on it.

    A reader who has seen enough, such as `head`, is no error: the command ends there, with 0.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.is_begun = False

    def write(self, text: str) -> int:
        """Write."""
        self.is_begun = self.is_begun or bool(text)
        with self._ending():
            return self._stream.write(text)

    def flush(self) -> None:
        """Write what is held back."""
        with self._ending():
            self._stream.flush()

    @contextmanager
    def _ending(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:
            # nothing more is written, not even what the interpreter flushes at its end
            os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())
            raise SystemExit(DONE) from None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _Forgiving:
    """Standard error that is lost once it takes no more: full, or read by nobody. Work goes on as if it were closed.

    `last` is what was said last.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.last = ""

    def write(self, text: str) -> int:
        """Write, or lose it."""
        self.last = text.strip() or self.last
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
