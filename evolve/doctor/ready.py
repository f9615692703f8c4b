"""Refuses to begin with what would be missed later."""

from __future__ import annotations

from collections.abc import Mapping

from evolve.assembly import make_environment
from evolve.config import Config
from evolve.errors import ConfigError
from evolve.harness.artifact import read_harness
from evolve.models.settings import ModelSettings
from evolve.repository import harness_folder, open_repository
from evolve.workspace import Workspace


def require_ready(config: Config, environ: Mapping[str, str]) -> None:
    """Refuse to begin with an environment, without a key or without a price that will be missed later.

    Raises:
        ConfigError: the environment is not installed, a variable that an endpoint's key should be in is not set, or
            money is limited and a model's price is not known.
    """
    make_environment(config.environment, config.environments.get(config.environment, {}))
    asked = {"model": config.model}
    if config.proposer.kind == "openai" and config.proposer.model is not None:
        asked["proposer.model"] = config.proposer.model
    for place, settings in asked.items():
        if name := missing_key(settings, environ):
            raise ConfigError(
                f"no key for {settings.base_url}: set the variable {name} (in the environment or in .env), "
                f"or name another one in {place}.api_key_env"
            )
        if config.budget.usd is not None and settings.kind == "openai" and settings.price is None:
            raise ConfigError(
                f"budget.usd is {config.budget.usd:g} and nothing could keep it, for what a token costs is not known: "
                f"set {place}.price (US dollars for a million tokens), or limit budget.tokens instead"
            )


def require_harness(workspace: Workspace, environment: str) -> None:
    """Refuse to begin with a committed harness that does not read; a missing one is the run's own business.

    Raises:
        HarnessError: names the file and what is wrong.
        RepositoryError: the workspace is no repository.
    """
    with open_repository(workspace.root) as repository:
        files = repository.read_files("HEAD", harness_folder(environment))
    if files:
        read_harness(files)


def missing_key(settings: ModelSettings, environ: Mapping[str, str]) -> str | None:
    """Return the variable that a model's key should be in and is not."""
    name = settings.api_key_env
    return name if settings.kind == "openai" and name is not None and not environ.get(name) else None
