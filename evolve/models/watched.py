"""A model whose requests are looked through for canaries before they are sent."""

from __future__ import annotations

import orjson

from evolve.canaries import Canaries
from evolve.protocols import Model, ModelRequest
from evolve.records import Completion, ModelFingerprint


class WatchedModel:
    """Asks the model behind it, unless the request holds a canary.

    Args:
        seen_in: what a request to this model is called in the error.
    """

    def __init__(self, model: Model, canaries: Canaries, *, seen_in: str) -> None:
        self.model = model
        self._canaries = canaries
        self._seen_in = seen_in

    @property
    def fingerprint(self) -> ModelFingerprint:
        """The fingerprint of the model behind it."""
        return self.model.fingerprint

    async def complete(self, request: ModelRequest) -> Completion:
        """Answer one request.

        Raises:
            CanaryFound: the request holds a canary; nothing was sent.
            ProviderError: the endpoint failed.
        """
        self._canaries.refuse(orjson.dumps([request.messages, request.tools]), self._seen_in)
        return await self.model.complete(request)

    async def close(self) -> None:
        """Close the model behind it."""
        await self.model.close()
