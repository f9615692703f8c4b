"""Refuses to begin with what would be missed later."""

from __future__ import annotations

from collections.abc import Mapping

from evolve.canaries import Canaries
from evolve.config import Config, flat_values
from evolve.environments.installed import make_environment
from evolve.errors import ConfigError
from evolve.harness.artifact import Harness, read_harness
from evolve.models.create import create_model
from evolve.models.settings import ModelSettings
from evolve.proposers.command import CommandProposer
from evolve.proposers.create import create_proposer
from evolve.protocols import Proposer
from evolve.repository import harness_folder, open_repository
from evolve.secrets import scrub, secret_values
from evolve.workspace import Workspace


def require_ready(config: Config, environ: Mapping[str, str]) -> None:
    """Refuse to begin with an environment, a key, a price or a model that will be missed later.

    Raises:
        ConfigError: the environment is not installed, a variable that an endpoint's key should be in is not set,
            money is limited and a model's price is not known, or the model cannot be made.
    """
    require_no_secret(config, environ)
    make_environment(config.environment, config.environments.get(config.environment, {}))
    for place, settings in asked(config).items():
        require_key(place, settings, environ)
        require_price(place, settings, config)
    create_model(config.model, environ=environ)


def require_no_secret(config: Config, environ: Mapping[str, str]) -> None:
    """Refuse a credential in the configuration, which goes into ledger and reports. The ledger's own URL does not.

    Raises:
        ConfigError: names the key, and not what it holds.
    """
    secrets = secret_values(environ)
    for key, value in flat_values(config).items():
        if not key.startswith("ledger.") and scrub(value, secrets) != value:
            raise ConfigError(
                f"{key} holds a credential, and a configuration is written into ledger and reports: put it into a "
                "variable (in the environment or in .env), which model.api_key_env names"
            )


def require_key(place: str, settings: ModelSettings, environ: Mapping[str, str]) -> None:
    """Refuse a model whose key is not set.

    Args:
        place: the table of the configuration that describes it.

    Raises:
        ConfigError: names the variable.
    """
    if name := missing_key(settings, environ):
        raise ConfigError(
            f"no key for {settings.base_url}: set the variable {name} (in the environment or in .env), "
            f"or name another one in {place}.api_key_env"
        )


def require_price(place: str, settings: ModelSettings, config: Config) -> None:
    """Refuse a limit in dollars where nobody knows what the model costs.

    Args:
        place: the table of the configuration that describes the model.

    Raises:
        ConfigError: names what would set the price, and the other limit.
    """
    if config.budget.usd is not None and settings.kind == "openai" and settings.price is None:
        raise ConfigError(
            f"budget.usd is {config.budget.usd:g} and nothing could keep it, for what a token costs is not known: "
            f"set {place}.price (US dollars for a million tokens), or limit budget.tokens instead"
        )


def require_startable(workspace: Workspace, config: Config, environ: Mapping[str, str], *, is_new: bool) -> None:
    """Refuse to begin a run that could not go on, before anything of it is on record.

    Raises:
        UserError: as `require_ready`; the proposer cannot be made, its program is not installed, or a new run's
            harness does not read.
    """
    require_ready(config, environ)
    require_proposer(workspace, config, environ)
    if is_new:
        require_harness(workspace, config.environment)


def require_harness(workspace: Workspace, environment: str) -> Harness | None:
    """Return the harness that is committed now; None where none is, which is the run's own business.

    Raises:
        HarnessError: names the file and what is wrong.
        RepositoryError: the workspace is no repository.
    """
    with open_repository(workspace.root) as repository:
        files = repository.read_files("HEAD", harness_folder(environment))
    return read_harness(files) if files else None


def missing_key(settings: ModelSettings, environ: Mapping[str, str]) -> str | None:
    """Return the variable that a model's key should be in and is not."""
    name = settings.api_key_env
    return name if settings.kind == "openai" and name is not None and not environ.get(name) else None


def asked(config: Config) -> dict[str, ModelSettings]:
    """Return the models that a run asks, by the table of the configuration that describes each."""
    proposer = config.proposer.model if config.proposer.kind == "openai" else None
    return {"model": config.model, **({"proposer.model": proposer} if proposer else {})}


def require_proposer(workspace: Workspace, config: Config, environ: Mapping[str, str]) -> None:
    """Refuse a proposer that cannot be made, whose program is not installed, or that could not reach its model.

    Raises:
        UserError: says what is missing, or names the address or proxy that keeps a coding agent from its model.
    """
    proposer = make_proposer(workspace, config, environ)
    if isinstance(proposer, CommandProposer):
        proposer.find_program()
        proposer.require_way_out()


def make_proposer(workspace: Workspace, config: Config, environ: Mapping[str, str]) -> Proposer:
    """Make a proposer to look at, not to ask.

    Raises:
        UserError: it cannot be made; or a sandbox is required, and none holds here.
    """
    return create_proposer(workspace, config, environ=environ, replay=str, canaries=Canaries({}))
