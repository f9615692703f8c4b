"""Makes a model of each kind from its settings, and asks a model whether it calls tools.

The only module that knows all kinds. It imports a kind when one is made: the client of the HTTP kinds
takes longer to import than all the rest.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from evolve.errors import ConfigError
from evolve.models.calls import json_object
from evolve.models.recorded import RecordedModel, recording_file
from evolve.models.scripted import ScriptedModel, by_turn, reply_call, reply_text
from evolve.models.settings import ModelSettings, named
from evolve.models.text_protocol import TextProtocolModel
from evolve.named_files import read_text
from evolve.protocols import Model, ModelRequest
from evolve.records import Completion, Json

PROBE_WORD = "ping"


def create_model(settings: ModelSettings, *, environ: Mapping[str, str] = os.environ) -> Model:
    """Return the model that the settings describe. Nothing is asked and nothing is started yet.

    Args:
        settings: the kind and its options.
        environ: where keys and the user's cache folder are looked up.

    Raises:
        ConfigError: an option that this kind needs is missing, or names a file that is not there; or a recording is of
            another model than `id` names.
    """
    if settings.kind == "recorded":
        return _recorded(settings)
    if settings.kind == "scripted":
        path = named(settings.script, "script", "scripted")
        model: Model = ScriptedModel(by_turn(read_script(path)), model_id=settings.id or path.stem)
    elif settings.kind == "local":
        from evolve.models.local import LocalModel

        model = LocalModel(settings, environ=environ)
    elif settings.id:
        from evolve.models.openai import OpenAIModel

        model = OpenAIModel(settings, environ=environ)
    else:
        raise ConfigError(f"model.id is empty: name a model that {settings.base_url} serves")
    return TextProtocolModel(model) if settings.protocol == "text" else model


def read_script(path: Path) -> list[Completion]:
    """Read replies from JSON Lines: `{"tool": …, "arguments": {…}}` calls a tool, `{"text": …}` says something.

    Raises:
        ConfigError: the file is missing or empty, or a line is neither; names the line.
    """
    lines = read_text("model.script", path).splitlines()
    replies = [
        _reply(json_object(line), f"{path}, line {number}") for number, line in enumerate(lines, 1) if line.strip()
    ]
    if not replies:
        raise ConfigError(f"model.script names {path}, which holds no replies")
    return replies


async def probe_protocol(model: Model) -> Literal["tools", "text", "malformed"]:
    """Ask for one tiny tool call and return how it came: as a call, as text, or so that the endpoint gave up.

    Raises:
        ProviderError: the model cannot be asked.
    """
    parameters = {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}
    function = {"name": "echo", "description": "Say a word.", "parameters": parameters}
    messages = [{"role": "user", "content": f"Call the tool echo with the word {PROBE_WORD}."}]
    request = ModelRequest(messages, [{"type": "function", "function": function}], is_first=True)
    completion = await model.complete(request)
    if completion.malformed is not None:
        return "malformed"
    return "tools" if any(call.tool == "echo" for call in completion.calls) else "text"


def _recorded(settings: ModelSettings) -> RecordedModel:
    model = RecordedModel(recording_file(named(settings.recording, "recording", "recorded")))
    recorded = model.fingerprint.model_id
    if settings.id not in ("", recorded):
        raise ConfigError(
            f"model.id is {settings.id!r}, and {model.path.name} is a recording of {recorded}: leave model.id empty, "
            "or ask that model with another model.kind"
        )
    return model


def _reply(written: Json | None, where: str) -> Completion:
    if written is not None and written.keys() == {"text"}:
        return reply_text(str(written["text"]))
    if written is not None and written.keys() == {"tool", "arguments"} and isinstance(written["arguments"], dict):
        return reply_call(str(written["tool"]), **written["arguments"])
    raise ConfigError(f"{where}: neither a text nor a tool with arguments")
