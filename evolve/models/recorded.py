"""A recording: the completions of one model by request, for replaying a run without the model.

A recording holds no messages, only the digests of the requests and the answers to them.
"""

from __future__ import annotations

import lzma
from collections.abc import Iterable
from pathlib import Path

import orjson

from evolve.errors import ConfigError, UnseenRequestError, UserError
from evolve.models.cache import request_key
from evolve.models.settings import SHIPPED
from evolve.named_files import read_bytes
from evolve.protocols import ModelRequest
from evolve.records import Completion, ModelFingerprint
from evolve.resources import resource

SCHEMA_VERSION = 1


class RecordedModel:
    """A model that gives a recording's answers, under the fingerprint of the model that gave them.

    Raises:
        ConfigError: the file is missing or is no recording.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        lines = _read(path)
        try:
            header = orjson.loads(lines[0])
            if header["schema_version"] != SCHEMA_VERSION:
                raise ConfigError(
                    f"{path} has schema version {header['schema_version']}, and {SCHEMA_VERSION} is known"
                )
            self._fingerprint = ModelFingerprint.model_validate(header["fingerprint"])
            self.note = str(header["note"])
            entries = (orjson.loads(line) for line in lines[1:])
            self._completions = {entry["key"]: orjson.dumps(entry["completion"]) for entry in entries}
        except (ValueError, KeyError, TypeError, IndexError) as error:
            raise ConfigError(f"{path} is no recording: {error}") from error
        self._digest = self._fingerprint.digest

    def __len__(self) -> int:
        return len(self._completions)

    @property
    def fingerprint(self) -> ModelFingerprint:
        """The fingerprint of the model that was recorded."""
        return self._fingerprint

    async def complete(self, request: ModelRequest) -> Completion:
        """Return the recorded answer to a request.

        Raises:
            UnseenRequestError: the recording holds no answer to it.
        """
        stored = self._completions.get(request_key(self._digest, request))
        if stored is None:
            raise UnseenRequestError(
                f"{self.path.name} holds {len(self)} completions of {self._fingerprint.model_id} and none for this "
                "request, which differs from all that were recorded: the harness, the tasks or a setting is another. "
                "Only a live model can answer it: model.kind openai or local, or `evolve demo --live`"
            )
        return Completion.model_validate_json(stored)

    async def close(self) -> None:
        """Do nothing; the file was read at once."""


def recording_file(named: Path) -> Path:
    """Return where a recording lies that a configuration names.

    Raises:
        ConfigError: none of that name comes with evolve.
    """
    name = str(named)
    if not name.startswith(SHIPPED):
        return named.expanduser()
    try:
        return resource(f"recordings/{name.removeprefix(SHIPPED)}.jsonl.xz")
    except UserError as error:
        raise ConfigError(f"model.recording is {name!r}, and no recording of that name comes with evolve") from error


def write_recording(
    path: Path, fingerprint: ModelFingerprint, entries: Iterable[tuple[str, Completion]], note: str
) -> None:
    """Write a recording; equal entries give equal bytes. A path that ends in `.xz` is compressed.

    Args:
        path: `*.jsonl` or `*.jsonl.xz`.
        fingerprint: of the model that answered.
        entries: keys of requests with their completions, in any order; of equal keys the last one stays.
        note: what was recorded, and how, for people.
    """
    header = {"schema_version": SCHEMA_VERSION, "fingerprint": fingerprint.model_dump(mode="json"), "note": note}
    lines = [orjson.dumps(header, option=orjson.OPT_SORT_KEYS)]
    for key, completion in sorted(dict(entries).items()):
        answer = completion.model_dump(mode="json", exclude_defaults=True)
        # not sorted: the order in which a model wrote its arguments is part of what it said
        lines.append(orjson.dumps({"completion": answer, "key": key}))
    content = b"\n".join(lines) + b"\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(lzma.compress(content, preset=9 | lzma.PRESET_EXTREME) if path.suffix == ".xz" else content)


def _read(path: Path) -> list[bytes]:
    try:
        content = read_bytes("model.recording", path)
        return (lzma.decompress(content) if path.suffix == ".xz" else content).splitlines()
    except lzma.LZMAError as error:
        raise ConfigError(f"{path} is no recording: {error}") from error
