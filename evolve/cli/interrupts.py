"""Ctrl-C: pressed once it unwinds what is under way, once more it ends the process at once. One line, exit code 130.

An exception that a signal raises goes through whatever runs at that moment, and not all of that bears one: on an event
loop it leaves tasks that nobody waits for, and while a module is loaded it can be the end of the process.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING

from evolve.cli.codes import INTERRUPTED

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

LINE = b"evolve: interrupted; what was recorded is kept\n"
SHOW_CURSOR = b"\r\x1b[K\x1b[?25h"
IMPORT_SYSTEM = "<frozen importlib._bootstrap>"


def take_interrupts() -> None:
    """Decide from now on what Ctrl-C does. Where it is ignored, as in a job in the background, it stays so."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _unwind)


def ignore_interrupts() -> None:
    """Let Ctrl-C change nothing any more: the command has ended, and what it says of that is said once."""
    if signal.getsignal(signal.SIGINT) in (_unwind, _end_at_once):
        signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def cancelling(loop: AbstractEventLoop) -> Iterator[None]:
    """Have Ctrl-C cancel all that the loop does, while the block lasts."""
    before = signal.getsignal(signal.SIGINT)
    if not callable(before):
        yield
        return

    def cancel(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, _end_at_once)
        with suppress(RuntimeError):  # it was closed just now: the work is done
            loop.call_soon_threadsafe(_cancel_all, loop)

    with suppress(ValueError):  # not the main thread: signals are not ours
        signal.signal(signal.SIGINT, cancel)
    try:
        yield
    finally:
        with suppress(ValueError):
            signal.signal(signal.SIGINT, before)


def _cancel_all(loop: AbstractEventLoop) -> None:
    from asyncio import all_tasks

    for task in all_tasks(loop):
        task.cancel()


def _unwind(number: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt, but never into the start of a native module: orjson's crashes of it (its issue 310)."""
    if _is_loading(frame):
        _end_at_once(number, frame)
    signal.signal(signal.SIGINT, _end_at_once)
    raise KeyboardInterrupt


def _is_loading(frame: FrameType | None) -> bool:
    while frame is not None and frame.f_code.co_filename != IMPORT_SYSTEM:
        frame = frame.f_back
    return frame is not None


def _end_at_once(number: int, frame: FrameType | None) -> None:
    """End without unwinding: what is on record is so whether or not anybody tidies up."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(OSError):
        os.write(2, (SHOW_CURSOR if os.isatty(2) else b"") + LINE)
    os._exit(INTERRUPTED)
