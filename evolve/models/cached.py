"""A model behind the completion cache: what is stored is not asked again, and equal requests under way are one."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from evolve.models.budget import Budget, estimate
from evolve.models.cache import CompletionCache, request_bytes
from evolve.models.settings import Price
from evolve.protocols import Model, ModelRequest
from evolve.records import Completion, ModelFingerprint


@dataclass(frozen=True, slots=True)
class Answered:
    """A completion and where it came from.

    `key` names the request. `is_asked` is True where this episode asked the model, now or before it was
    interrupted; False where it reuses what another episode asked.
    """

    completion: Completion
    key: str
    is_asked: bool


class _Asking:
    """A request that is on its way, and those who wait for its answer.

    They may be cancelled, it goes on: it is paid for, so its answer is kept.
    """

    def __init__(self, owner: str) -> None:
        self.owner = owner
        self.task: asyncio.Task[None] | None = None
        self._waiters: list[asyncio.Future[Completion]] = []

    async def answer(self) -> Completion:
        """Wait for the completion."""
        waiter: asyncio.Future[Completion] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        return await waiter

    def tell(self, completion: Completion) -> None:
        """Hand the completion to all who wait."""
        for waiter in self._waiting():
            waiter.set_result(completion)

    def fail(self, error: Exception) -> None:
        """Raise an error where they wait."""
        for waiter in self._waiting():
            waiter.set_exception(error)

    def give_up(self) -> None:
        """Cancel those who wait."""
        for waiter in self._waiting():
            waiter.cancel()

    def _waiting(self) -> Iterator[asyncio.Future[Completion]]:
        return (waiter for waiter in self._waiters if not waiter.done())


class CachedModel:
    """A model that is asked only what nobody asked before.

    Args:
        model: asked for what is not stored.
        cache: shared by all episodes, and by all models: their fingerprints are part of each key.
        budget: what asking may cost; reused completions cost nothing.
        payer: the run whose budget it is; stands with each completion, so that a resume knows what was paid.
        price: what a request will cost, for the budget; None: known only afterwards.
        grace_s: how long `close` waits for answers on their way: they are paid for, and a resume needs them.
    """

    def __init__(
        self,
        model: Model,
        cache: CompletionCache,
        *,
        budget: Budget | None = None,
        payer: str = "",
        price: Price | None = None,
        grace_s: float = 5.0,
    ) -> None:
        self.model = model
        self.cache = cache
        self._budget = budget
        self._payer = payer
        self._price = price
        self._grace_s = grace_s
        self._asking: dict[str, _Asking] = {}

    @property
    def fingerprint(self) -> ModelFingerprint:
        """The fingerprint of the model behind the cache."""
        return self.model.fingerprint

    async def complete(self, request: ModelRequest, *, owner: str) -> Answered:
        """Answer one request of the episode `owner`. Equal requests at the same time are asked once.

        Raises:
            ProviderError: the model failed; all who wait for this request get the error.
            BudgetSpent: asking could exceed the budget.
        """
        content = request_bytes(self._digest, request)
        key, size = hashlib.sha256(content).hexdigest(), len(content)
        del content  # long, and nobody needs it while the model thinks
        stored = self.cache.get(key)
        if stored is not None:
            return Answered(stored.completion, key, is_asked=stored.owner == owner)
        asking = self._asking.get(key)
        if asking is None:
            asking = self._asking[key] = _Asking(owner)
            asking.task = asyncio.create_task(self._answer(asking, key, request, size))
            asking.task.add_done_callback(lambda _: self._give_up(key, asking))
        return Answered(await asking.answer(), key, is_asked=asking.owner == owner)

    async def close(self) -> None:
        """Take the answers that are on their way, give up those that keep us waiting, and close the model."""
        waiting = tuple(asking.task for asking in self._asking.values() if asking.task is not None)
        if waiting:
            await asyncio.wait(waiting, timeout=self._grace_s)
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        await self.model.close()

    @cached_property
    def _digest(self) -> str:
        return self.model.fingerprint.digest

    async def _answer(self, asking: _Asking, key: str, request: ModelRequest, size: int) -> None:
        """Ask the model and tell all who wait; nobody may be left to tell."""
        try:
            completion = await self._ask(request, size)
            self.cache.put(key, asking.owner, completion, payer=self._payer)
        except Exception as error:
            del self._asking[key]
            asking.fail(error)
        else:
            del self._asking[key]
            asking.tell(completion)

    def _give_up(self, key: str, asking: _Asking) -> None:
        """Leave nobody waiting for a task that was cancelled, perhaps before it began."""
        if self._asking.get(key) is asking:
            del self._asking[key]
            asking.give_up()

    async def _ask(self, request: ModelRequest, size: int) -> Completion:
        if self._budget is None:
            return await self.model.complete(request)
        with self._budget.reserve(estimate(size, self.fingerprint.sampling, self._price)) as reservation:
            completion = await self.model.complete(request)
            reservation.settle(completion.usage)
        return completion
