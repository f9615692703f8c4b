"""Asks a model whether an agent met what a task expects in words. Used for the part NL_ASSERTION and nothing else."""

from __future__ import annotations

from evolve.environments.tau2.side_model import SideModel
from evolve.environments.tau2.words import judge_request
from evolve.models.calls import json_object
from evolve.protocols import ModelRequest
from evolve.records import Completion, Json


class Judge:
    """A judging model. Equal conversations get the same verdict, since answers are kept."""

    def __init__(self, model: SideModel) -> None:
        self.model = model

    def meets_all(self, expected: list[str], conversation: list[Json]) -> bool:
        """Say whether the conversation meets every expectation.

        Raises:
            ProviderError: the judge cannot be asked or did not answer with one verdict for each.
        """
        request = ModelRequest(judge_request(expected, conversation), [])
        answer = self.model.ask(request, is_fine=lambda completion: _verdicts(completion, len(expected)) is not None)
        return all(_verdicts(answer, len(expected)) or ())


def _verdicts(completion: Completion, count: int) -> list[bool] | None:
    written = json_object(completion.text.strip().removeprefix("```json").removesuffix("```").strip())
    met = None if written is None else written.get("met")
    is_complete = isinstance(met, list) and len(met) == count and all(isinstance(value, bool) for value in met)
    return met if is_complete else None
