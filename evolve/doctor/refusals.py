"""Why a run would refuse to begin or to go on: the checks of its start, one by one; and what it only warns of.

Asks and changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from evolve.config import Config
from evolve.doctor.ready import (
    asked,
    make_proposer,
    require_harness,
    require_key,
    require_no_secret,
    require_price,
    require_proposer,
)
from evolve.environments.installed import make_environment
from evolve.errors import EvolveError
from evolve.harness.artifact import Harness
from evolve.harness.check import unit_ids
from evolve.holding import read_ledger
from evolve.loop.beginning import deciding, require_present, require_unchanged_files
from evolve.models.create import create_model
from evolve.models.settings import ModelSettings
from evolve.proposers.sandbox import MEND
from evolve.records import Layer
from evolve.repository import Repository, harness_folder, open_repository
from evolve.seal import require_heldout, require_whole
from evolve.workspace import Workspace, adding


@dataclass(frozen=True)
class Refusal:
    """One reason why a run would not begin: what it is about, the run's own words, and what mends it."""

    about: str
    reason: str
    mend: str


@dataclass(frozen=True)
class _Check:
    about: str
    check: Callable[[], object]
    mend: str = ""


def refusals(
    workspace: Workspace | None, config: Config, environ: Mapping[str, str], *, resume: str | None = None
) -> tuple[Refusal, ...]:
    """Return why a run would refuse to begin or to go on, each reason once, in the order in which one would mend them.

    Args:
        workspace: None outside one; its state is then passed over.
        resume: the run that would go on; None is a new one, which begins with the harness that is committed now.
    """
    checks = [*_of_configuration(config, environ), *_of_models(config, environ)]
    if workspace is not None:
        checks += _of_proposer(workspace, config, environ)
        checks += _of_workspace(workspace, config, resume)
    found: dict[str, Refusal] = {}
    for one in checks:
        for reason in _reason(one.check):
            found.setdefault(reason, Refusal(one.about, reason, one.mend))
    return tuple(found.values())


def model_name(settings: ModelSettings, place: str = "model") -> str:
    """Return what a model is called in a finding; `place` is the table that describes it."""
    return f"{place} {settings.id or settings.kind}"


def _of_configuration(config: Config, environ: Mapping[str, str]) -> Iterator[_Check]:
    name, options = config.environment, config.environments.get(config.environment, {})
    yield _Check("configuration", partial(require_no_secret, config, environ), "mend that value")
    mend = f"see environment and [environments.{name}] in evolve.toml; `evolve env list` shows those that are installed"
    yield _Check(f"environment {name}", partial(make_environment, name, options), mend)


def _of_models(config: Config, environ: Mapping[str, str]) -> Iterator[_Check]:
    for place, settings in asked(config).items():
        key, price = partial(require_key, place, settings, environ), partial(require_price, place, settings, config)
        yield _Check(model_name(settings, place), key, f"set {settings.api_key_env} in the environment or in .env")
        yield _Check(model_name(settings, place), price, f"see [{place}] and [budget] in evolve.toml")
    make = partial(create_model, config.model, environ=environ)
    yield _Check(model_name(config.model), make, "see [model] in evolve.toml")


def _of_proposer(workspace: Workspace, config: Config, environ: Mapping[str, str]) -> Iterator[_Check]:
    """Yield the check out of the sandbox first, then what the sandbox adds, then the way out of it."""
    settings = config.proposer
    outside = config.model_copy(update={"proposer": settings.model_copy(update={"sandbox": "off"})})
    about = f"agent {settings.agent}" if settings.kind == "command" and settings.agent else "proposer"
    require = partial(require_proposer, workspace, environ=environ)
    yield _Check(about, partial(require, config=outside), "see [proposer] in evolve.toml")
    yield _Check("proposer sandbox", partial(make_proposer, workspace, config, environ), MEND)
    yield _Check(about, partial(require, config=config), "mend or unset it")


def _of_workspace(workspace: Workspace, config: Config, resume: str | None) -> Iterator[_Check]:
    folder = harness_folder(config.environment)
    yield _Check("repository", partial(_require_repository, workspace))
    if resume is None:
        mend = f"mend the file, then `evolve harness check {folder}`, then commit"
        yield _Check("repository", partial(require_harness, workspace, config.environment), mend)
        mend = f"git add {folder} && git commit, or undo the changes"
        yield _Check("repository", partial(_in_repository, workspace, config, require_unchanged_files), mend)
        mend = adding(workspace.root, config.environment)
        yield _Check("repository", partial(_in_repository, workspace, config, require_present), mend)
    yield _Check("ledger", partial(_require_on_record, workspace, config, resume))


def _require_repository(workspace: Workspace) -> None:
    with open_repository(workspace.root):
        pass


def _in_repository(workspace: Workspace, config: Config, require: Callable[[Repository, str], None]) -> None:
    with open_repository(workspace.root) as repository:
        require(repository, config.environment)


def _require_on_record(workspace: Workspace, config: Config, resume: str | None) -> None:
    """Compare the ledger with git, the configuration with the run's, the held-out split with the commitment."""
    options = config.environments.get(config.environment, {})
    with read_ledger(workspace, config) as ledger:
        if ledger is None:
            return
        with open_repository(workspace.root) as repository:
            require_whole(repository, ledger)
        if resume is not None:
            ledger.require_config(resume, deciding(config))
        require_heldout(ledger, make_environment(config.environment, options), options)


def _reason(check: Callable[[], object]) -> Iterator[str]:
    """Yield what a check refuses with; nothing where it passes."""
    try:
        check()
    except (EvolveError, ImportError) as error:
        yield str(error)


def warnings(workspace: Workspace, config: Config) -> tuple[str, ...]:
    """Return what a new run begins in spite of: units switched off that the harness committed now does not have."""
    try:
        harness = require_harness(workspace, config.environment) if config.harness.off else None
    except EvolveError:  # a run refuses for it
        harness = None
    return unknown_units(config, harness, "HEAD") if harness else ()


def unknown_units(config: Config, harness: Harness, commit: str) -> tuple[str, ...]:
    """Return a sentence for each unit that is switched off and that a harness does not have.

    Args:
        commit: what the harness was read at, in words.
    """
    off = [name for name in config.harness.off if name not in set(Layer)]
    known = sorted(unit_ids(harness)) if off else []
    there = f"there are: {', '.join(known)}" if known else "there is none"
    where = f"no unit of {harness_folder(config.environment)} at {commit}; {there}"
    return tuple(f"harness.off names {name}, which is {where}" for name in off if name not in known)
