"""A second model beside the agent's: it plays the customer or judges. Asked once for each request, ever.

Answers are kept on disk, one file each, so that a session repeats given task, trial and calls, and so that several
processes can share them. What it used stands in the kept answers and is counted here.
"""

from __future__ import annotations

import asyncio
import logging
import os
import tempfile
import threading
import weakref
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from evolve.errors import ProviderError, StoreError
from evolve.models.cache import request_key
from evolve.protocols import Model, ModelRequest
from evolve.records import Completion, ModelFingerprint, Usage

log = logging.getLogger(__name__)
T = TypeVar("T")


class SideModel:
    """Asks a model from any thread and keeps what it answered.

    Args:
        make: makes the model; called when it is first asked.
        fingerprint: of that model; names the folder of its answers.
        folder: where answers are kept, for all such models.
    """

    def __init__(self, make: Callable[[], Model], fingerprint: ModelFingerprint, folder: Path) -> None:
        self.fingerprint = fingerprint
        self.folder = folder / fingerprint.digest[:16]
        self.usage = Usage()
        self.usage_asked = Usage()
        self._make = make
        self._lock = threading.Lock()
        self._loop: _LoopThread | None = None
        self._model: Model | None = None

    def ask(self, request: ModelRequest, *, is_fine: Callable[[Completion], bool]) -> Completion:
        """Return the kept answer to a request, else ask.

        Args:
            request: what is asked.
            is_fine: tells whether an answer can be used; others are not kept.

        Raises:
            ProviderError: the model cannot be asked, or its answer cannot be used.
        """
        path = self.folder / f"{request_key(self.fingerprint.digest, request)}.json"
        kept = _read(path)
        if kept is None:
            asked = self._asked(request)
            if not is_fine(asked):
                raise ProviderError(f"model {self.fingerprint.model_id!r} gave an answer that cannot be used: {asked}")
            kept = _keep(path, asked)
            with self._lock:
                self.usage_asked += asked.usage
        with self._lock:
            self.usage += kept.usage
        return kept

    def close(self) -> None:
        """Close the model and end its thread; it can be asked again."""
        with self._lock:
            loop, model, self._loop, self._model = self._loop, self._model, None, None
        if loop is not None and model is not None:
            loop.run(model.close())
            loop.end()
            used = self.usage_asked
            log.info(
                "%s: %d prompt and %d completion tokens asked, %s USD; answers are in %s",
                self.fingerprint.model_id,
                used.prompt_tokens,
                used.completion_tokens,
                "?" if used.cost_usd is None else f"{used.cost_usd:.4f}",
                self.folder,
            )

    def _asked(self, request: ModelRequest) -> Completion:
        with self._lock:
            if self._loop is None or self._model is None:
                self._loop, self._model = _LoopThread(), self._make()
                weakref.finalize(self, _shut, self._loop, self._model)
            loop, model = self._loop, self._model
        return loop.run(model.complete(request))


class _LoopThread:
    """An event loop in a thread: a session is called from plain threads, and models live on a loop."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="tau2 side model", daemon=True)
        self._thread.start()

    @property
    def is_running(self) -> bool:
        return not self._loop.is_closed()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


def _shut(loop: _LoopThread, model: Model) -> None:
    """Close what nobody closed, at the latest when the program ends."""
    if loop.is_running:
        loop.run(model.close())
        loop.end()


def _read(path: Path) -> Completion | None:
    try:
        return Completion.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        raise StoreError(f"the kept answer {path} does not read: delete it and it is asked again ({error})") from error


def _keep(path: Path, completion: Completion) -> Completion:
    """Store an answer unless another process did so first; return what is stored."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent) as whole:
            whole.write(completion.model_dump_json(exclude_defaults=True).encode())
            whole.flush()
            os.link(whole.name, path)
    except FileExistsError:
        return _read(path) or completion
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror}; option cache names another folder") from error
    return completion
