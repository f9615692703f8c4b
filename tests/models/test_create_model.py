"""From settings to a model."""

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from evolve.errors import ConfigError
from evolve.models.create import create_model, probe_protocol
from evolve.models.recorded import write_recording
from evolve.models.scripted import ScriptedModel, reply_call, reply_text
from evolve.models.settings import ModelSettings
from evolve.protocols import ModelRequest
from evolve.records import Completion

USER = {"role": "user", "content": "hi"}


def test_openai_kind_needs_no_key_until_it_is_asked() -> None:
    """Making a model reads no key, so a run that only replays stored completions needs none."""
    model = create_model(ModelSettings(kind="openai", id="m"), environ={})
    assert (model.fingerprint.model_id, model.fingerprint.endpoint) == ("m", "openai")


def test_text_protocol_wraps_any_kind() -> None:
    """The protocol is a choice of its own and stands in the fingerprint."""
    model = create_model(ModelSettings(kind="openai", id="m", protocol="text"), environ={})
    assert model.fingerprint.protocol == "text"


def test_recorded_kind_keeps_its_own_protocol(tmp_path: Path) -> None:
    """A recording answers under the fingerprint it was made with, whatever protocol the settings name."""
    fingerprint = ScriptedModel([], model_id="tiny").fingerprint
    write_recording(tmp_path / "r.jsonl.xz", fingerprint, [], "empty")
    settings = ModelSettings(kind="recorded", recording=tmp_path / "r.jsonl.xz", protocol="text")
    assert create_model(settings).fingerprint == fingerprint
    assert create_model(settings.model_copy(update={"id": "tiny"})).fingerprint == fingerprint


def test_a_recording_of_another_model_than_the_named_one_is_refused(tmp_path: Path) -> None:
    """What was recorded of one model is not told as what another one says."""
    write_recording(tmp_path / "r.jsonl", ScriptedModel([], model_id="tiny").fingerprint, [], "empty")
    with pytest.raises(ConfigError, match=r"model\.id is 'large', and r\.jsonl is a recording of tiny"):
        create_model(ModelSettings(kind="recorded", recording=tmp_path / "r.jsonl", id="large"))


def test_scripted_kind_reads_a_script(tmp_path: Path) -> None:
    """A script is JSON Lines, one reply for each turn."""
    path = tmp_path / "walk.jsonl"
    path.write_text('{"tool": "go", "arguments": {"to": "désk"}}\n\n{"text": "done"}\n', encoding="utf-8")
    model = create_model(ModelSettings(kind="scripted", script=path))
    said = {"role": "assistant", "content": ""}
    first = asyncio.run(model.complete(ModelRequest([USER], [])))
    second = asyncio.run(model.complete(ModelRequest([USER, said, USER], [])))
    assert (first.calls[0].tool, first.calls[0].arguments) == ("go", {"to": "désk"})
    assert second.text == "done"
    assert model.fingerprint.model_id == "walk"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"kind": "openai"}, "model.id"),
        ({"kind": "recorded"}, "model.recording"),
        ({"kind": "recorded", "recording": "absent.jsonl"}, "absent.jsonl"),
        ({"kind": "scripted"}, "model.script"),
        ({"kind": "scripted", "script": "absent.jsonl"}, "absent.jsonl"),
        ({"kind": "local"}, "model.path"),
        ({"kind": "local", "path": "absent.gguf"}, "model.path names absent.gguf, and there is no such file"),
        ({"kind": "local", "path": __file__, "chat_template": "absent.jinja"}, "model.chat_template names absent"),
        ({"kind": "local", "path": "."}, "model.path names ., which is a folder"),
        ({"kind": "scripted", "script": "."}, "model.script names ., which is a folder"),
        ({"kind": "recorded", "recording": "."}, "model.recording names ., which is a folder"),
    ],
)
def test_missing_options_are_named(fields: dict[str, Any], words: str) -> None:
    """What a kind needs and did not get is a configuration error that names it."""
    with pytest.raises(ConfigError) as caught:
        create_model(ModelSettings.model_validate(fields))
    assert words in str(caught.value)


@pytest.mark.parametrize(("lines", "words"), [("", "no replies"), ('{"text": "a"}\n{"say": 1}\n', "line 2")])
def test_broken_script_names_its_line(tmp_path: Path, lines: str, words: str) -> None:
    """A script that is empty, or holds a line of another form, is refused."""
    path = tmp_path / "s.jsonl"
    path.write_text(lines)
    with pytest.raises(ConfigError, match=words):
        create_model(ModelSettings(kind="scripted", script=path))


@pytest.mark.parametrize(
    ("reply", "protocol"),
    [
        (reply_call("echo", word="ping"), "tools"),
        (reply_text('{"name": "echo"}'), "text"),
        (reply_call("shout", word="ping"), "text"),
        (Completion(text="", malformed="did not parse"), "malformed"),
    ],
)
def test_probe_tells_how_calls_come(reply: Completion, protocol: str) -> None:
    """One tiny request shows whether calls come back as calls."""
    model = ScriptedModel([reply])
    assert asyncio.run(probe_protocol(model)) == protocol
    assert len(model.requests) == 1


def test_client_is_imported_only_for_a_kind_that_needs_it() -> None:
    """Replaying a recording does not pay for the import of the HTTP client, nor for the local runtime."""
    code = "import sys, evolve.models.create as c; print([n for n in ('openai', 'xllamacpp') if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
