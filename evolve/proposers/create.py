"""Makes the proposer that a configuration asks for. The only module that knows all kinds."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from evolve.canaries import Canaries
from evolve.config import Config
from evolve.environments.data import data_home
from evolve.errors import ConfigError
from evolve.harness.check import check_folder
from evolve.models.create import create_model
from evolve.models.watched import WatchedModel
from evolve.proposers.agents import find_row, home_of
from evolve.proposers.command import CommandProposer
from evolve.proposers.handoff import HandoffProposer
from evolve.proposers.mechanic import Mechanic
from evolve.proposers.openai import OpenAIProposer
from evolve.proposers.sandbox import OUTSIDE, Enclosure, choose_sandbox
from evolve.protocols import Proposer
from evolve.workspace import Workspace

DATA_VARIABLES = ("TAU2_DATA_DIR",)
"""Variables of benchmarks' own packages that name where their data is."""


def create_proposer(
    workspace: Workspace,
    config: Config,
    *,
    environ: Mapping[str, str],
    replay: Callable[[Path], str],
    canaries: Canaries,
    warn: Callable[[str], None] = lambda _: None,
) -> Proposer:
    """Return the proposer that a configuration describes.

    Args:
        canaries: looked for in what the proposer's own model is asked.
        warn: is told where an agent would run outside any sandbox.

    Raises:
        ConfigError: it names no agent, an unknown one, or no model; or it requires a sandbox and none holds here.
    """
    kind = config.proposer.kind
    if kind == "mechanic":
        return Mechanic()
    if kind == "handoff":
        return HandoffProposer(templates=workspace.prompts)
    if kind == "command":
        return _command(workspace, config, environ, warn)
    return _openai(workspace, config, environ=environ, replay=replay, canaries=canaries)


def _command(
    workspace: Workspace, config: Config, environ: Mapping[str, str], warn: Callable[[str], None]
) -> CommandProposer:
    settings = config.proposer
    return CommandProposer(
        find_row(settings.agent, settings.agents_file),
        environ=environ,
        transcripts=workspace.transcripts,
        model=settings.model.id if settings.model else None,
        templates=workspace.prompts,
        enclosure=_enclosure(workspace, config, environ, warn),
    )


def _enclosure(
    workspace: Workspace, config: Config, environ: Mapping[str, str], warn: Callable[[str], None]
) -> Enclosure | None:
    """Return what shuts a coding agent in; None, and a warning, where it runs UNPROTECTED."""
    found = choose_sandbox(config.proposer.sandbox, environ)
    if found.sandbox is None:
        warn(f"UNPROTECTED: the coding agent runs outside any sandbox ({found.reason}). {OUTSIDE}")
        return None
    options = (value for table in config.environments.values() for value in table.values() if isinstance(value, str))
    named = (*(text for text in options if os.sep in text), *(environ.get(name, "") for name in DATA_VARIABLES))
    data = (Path(text).expanduser() for text in named if text)
    return Enclosure(found.sandbox, hidden=(home_of(environ), workspace.root.resolve(), data_home(environ), *data))


def _openai(
    workspace: Workspace,
    config: Config,
    *,
    environ: Mapping[str, str],
    replay: Callable[[Path], str],
    canaries: Canaries,
) -> OpenAIProposer:
    settings = config.proposer
    if settings.model is None:
        raise ConfigError("proposer.kind is openai, and proposer.model is not set: name the model that writes patches")
    try:
        model = create_model(settings.model, environ=environ)
    except ConfigError as error:
        raise ConfigError(f"under proposer.model: {error}") from error
    return OpenAIProposer(
        WatchedModel(model, canaries, seen_in="a request to the proposer's model"),
        check=lambda folder: "\n".join(check_folder(folder)) or "The harness folder is fine.",
        replay=replay,
        transcripts=workspace.transcripts,
        turn_limit=settings.max_turns,
        templates=workspace.prompts,
    )
