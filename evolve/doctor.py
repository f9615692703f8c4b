"""Looks at what a run needs: what is there, what is missing, and the command that mends it. Changes nothing."""

from __future__ import annotations

from collections.abc import Mapping

from evolve.config import Config
from evolve.errors import ConfigError
from evolve.models.settings import ModelSettings


def require_keys(config: Config, environ: Mapping[str, str]) -> None:
    """Refuse to begin without a key that will be needed.

    Raises:
        ConfigError: a variable that a configured endpoint takes its key from is not set; names it.
    """
    asked = {"model": config.model}
    if config.proposer.kind == "openai" and config.proposer.model is not None:
        asked["proposer.model"] = config.proposer.model
    for place, settings in asked.items():
        if name := missing_key(settings, environ):
            raise ConfigError(
                f"no key for {settings.base_url}: set the variable {name} (in the environment or in .env), "
                f"or name another one in {place}.api_key_env"
            )


def missing_key(settings: ModelSettings, environ: Mapping[str, str]) -> str | None:
    """Return the variable that a model's key should be in and is not."""
    name = settings.api_key_env
    return name if settings.kind == "openai" and name is not None and not environ.get(name) else None
