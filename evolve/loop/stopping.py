"""How work is asked to stop: Ctrl-C, SIGTERM, a terminal that is closed, a file named STOP."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from types import FrameType

from evolve.progress import Progress, Said
from evolve.workspace import Workspace

STOP_POLL_S = 0.3
STOPPING = "stopping: what is under way goes to its end and is kept; Ctrl-C (once more) ends at once"


@asynccontextmanager
async def stop_signals(workspace: Workspace, progress: Progress) -> AsyncIterator[asyncio.Event]:
    """Give an event that Ctrl-C, SIGTERM, a terminal that is closed or a STOP file in the workspace sets.

    Ctrl-C after any of them does what it did before. Hang-ups that are ignored, as under nohup, stay so.
    """
    stop = asyncio.Event()

    def ask() -> None:
        if not stop.is_set():
            progress.report(Said(STOPPING))
        stop.set()
        give_back()

    async def watch() -> None:
        while not workspace.stop_file.exists():  # noqa: ASYNC110  a file gives no event
            await asyncio.sleep(STOP_POLL_S)
        ask()

    with _first_interrupt(ask) as give_back, _terminations(ask):
        watcher = asyncio.create_task(watch())
        try:
            yield stop
        finally:
            watcher.cancel()


@contextmanager
def _first_interrupt(ask: Callable[[], None]) -> Iterator[Callable[[], None]]:
    """Have the loop do this at the first Ctrl-C of the block; gives what hands Ctrl-C back before that.

    The loop's own handler is not used: when it is removed, Ctrl-C raises an exception into whatever the loop does.
    """
    loop, before = asyncio.get_running_loop(), signal.getsignal(signal.SIGINT)

    def pressed(number: int, frame: FrameType | None) -> None:
        give_back()
        loop.call_soon_threadsafe(ask)

    def give_back() -> None:
        if signal.getsignal(signal.SIGINT) is pressed:
            signal.signal(signal.SIGINT, before)

    if callable(before):
        with suppress(ValueError):  # not the main thread: signals are not ours
            signal.signal(signal.SIGINT, pressed)
    try:
        yield give_back
    finally:
        give_back()


@contextmanager
def _terminations(ask: Callable[[], None]) -> Iterator[None]:
    """Have the loop do this at SIGTERM and at a hang-up."""
    loop = asyncio.get_running_loop()
    asking = [one for one in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(one) is not signal.SIG_IGN]
    with suppress(NotImplementedError, RuntimeError, ValueError):
        for one in asking:
            loop.add_signal_handler(one, ask)
    try:
        yield
    finally:
        with suppress(NotImplementedError, RuntimeError, ValueError):
            for one in asking:
                loop.remove_signal_handler(one)
