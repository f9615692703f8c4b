"""Who plays the customer and who judges, as the options of an environment say."""

from __future__ import annotations

import os
from functools import cached_property

from evolve.environments.tau2 import words
from evolve.environments.tau2.benchmark import GUIDELINES, GUIDELINES_WITH_TOOLS
from evolve.environments.tau2.options import Options, UserSettings
from evolve.environments.tau2.side_model import SideModel
from evolve.environments.tau2.source import Source
from evolve.environments.tau2.upstream import Desks
from evolve.environments.tau2.user import ModelUser, ScriptedUser, User, Utterance, read_replies
from evolve.environments.tau2.world import phone_tools_of
from evolve.errors import ConfigError
from evolve.models.create import create_model
from evolve.models.settings import ModelSettings
from evolve.models.weights import cache_folder
from evolve.records import Json, Tool


class Players:
    """Everybody of an episode but the agent.

    Args:
        name: of the environment, for messages.
    """

    def __init__(self, name: str, source: Source, options: Options, desks: Desks) -> None:
        self._name = name
        self._source = source
        self._options = options
        self._desks = desks

    @property
    def has_user(self) -> bool:
        """True where somebody plays the customer."""
        return isinstance(self._options.user, UserSettings)

    @property
    def is_solo(self) -> bool:
        """True where the agent works on the ticket and the phone alone."""
        return self._source.domain == "telecom" and not self.has_user

    @property
    def customer(self) -> str:
        """Who plays the customer, in words."""
        if not self.has_user:
            return "no customer"
        return "scripted customer" if self._user_model is None else f"customer {self._user_model.fingerprint.model_id}"

    @property
    def deciding(self) -> Json:
        """What of them decides how an episode goes."""
        models = [model and model.fingerprint.digest for model in (self._user_model, self.judge)]
        script = {name: [turn.as_message() for turn in turns] for name, turns in self._script.items()}
        guidelines = None if self._user_model is None else self._guidelines
        return {"has_user": self.has_user, "models": models, "script": script, "guidelines": guidelines}

    @property
    def models(self) -> tuple[SideModel, ...]:
        """The models among them; each counts what it used."""
        return tuple(model for model in (self._user_model, self.judge) if model is not None)

    @cached_property
    def judge(self) -> SideModel | None:
        """The model that judges; None where none does."""
        judge = self._options.judge
        return self._side_model(judge) if isinstance(judge, ModelSettings) else None

    def user_of(self, official: Json, *, stream: str) -> User | None:
        """Return who plays the customer of a task; None where nobody does.

        Args:
            stream: names the random stream of a sampled model.

        Raises:
            ConfigError: the script has no replies for it.
        """
        if not self.has_user:
            return None
        official_id = official["id"]
        if self._user_model is None:
            if official_id not in self._script:
                raise ConfigError(
                    f"{self._name}: the script of option user.script has no replies for task {official_id}"
                )
            return ScriptedUser(self._script[official_id])
        return ModelUser(
            self._user_model, words.user_system(self._guidelines, official), self._phone_tools, stream=stream
        )

    @cached_property
    def _user_model(self) -> SideModel | None:
        user = self._options.user
        return self._side_model(user.model) if isinstance(user, UserSettings) and user.model is not None else None

    @cached_property
    def _script(self) -> dict[str, list[Utterance]]:
        user = self._options.user
        return read_replies(user.script) if isinstance(user, UserSettings) and user.script is not None else {}

    @cached_property
    def _guidelines(self) -> str:
        return self._source.read_guidelines(GUIDELINES_WITH_TOOLS if self._phone_tools else GUIDELINES)

    @cached_property
    def _phone_tools(self) -> list[Tool]:
        return phone_tools_of(self._desks.make())

    def _side_model(self, settings: ModelSettings) -> SideModel:
        folder = self._options.cache or cache_folder(os.environ) / "tau2"
        model = create_model(settings)
        return SideModel(lambda: create_model(settings), model.fingerprint, folder)
