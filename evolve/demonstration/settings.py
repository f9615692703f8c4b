"""The settings of the demo: which environments it plays, and with which recording or model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import takewhile
from pathlib import Path

from evolve.config import Loaded, load_config
from evolve.errors import UserError
from evolve.models.settings import SHIPPED
from evolve.resources import resource
from evolve.workspace import Workspace

ENVIRONMENTS = ("household", "service_desk")
TEMPLATE = "prompts/chat_templates/qwen2.5-coder-json.jinja"


def recorded_environments() -> list[str]:
    """Return the environments that a recording is shipped for."""
    recordings = resource("recordings")
    return [name for name in ENVIRONMENTS if (recordings / f"{name}.jsonl.xz").is_file()]


def demo_config(
    workspace: Workspace, environment: str, *, model_path: Path | None, environ: Mapping[str, str]
) -> Loaded:
    """Return the demo's settings for one environment.

    Args:
        model_path: a GGUF file to ask for real; None replays the recording.
    """
    flags = {f"model.{key}": value for key, value in _model(environment, model_path).items()}
    flags["environment"] = environment
    settings = resource(f"recordings/{environment}.toml")
    return load_config(workspace.root, file=settings, environ=environ, flags=flags)


def demo_settings(environment: str, *, model_path: Path | None = None) -> str:
    """Return the demo's settings as the text of a TOML file, so that what it does can be done step by step.

    Args:
        model_path: as in `demo_config`.

    Raises:
        UserError: none come with evolve for this environment.
    """
    if environment not in recorded_environments():
        known = " and ".join(recorded_environments())
        raise UserError(f"no recording of {environment} comes with evolve; there are those of {known}")
    shipped = resource(f"recordings/{environment}.toml").read_text("utf-8")
    lines = [f"{key} = {json.dumps(value)}" for key, value in _model(environment, model_path).items()]
    before, section, after = shipped.partition("[model]\n")
    header = "".join(takewhile(lambda line: line.startswith("#"), before.splitlines(keepends=True)))
    first = f"schema_version = 1\nenvironment = {json.dumps(environment)}\n"
    return header + first + before.removeprefix(header) + section + "\n".join(lines) + "\n" + after


def _model(environment: str, model_path: Path | None) -> dict[str, str]:
    """Return what tells a live demo from a recorded one, under [model]."""
    if model_path is None:
        return {"kind": "recorded", "recording": f"{SHIPPED}{environment}"}
    return {"kind": "local", "path": str(model_path.resolve()), "chat_template": str(resource(TEMPLATE))}
