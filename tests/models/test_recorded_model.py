"""Recordings replay a model's answers without the model."""

import asyncio
import lzma
from pathlib import Path

import orjson
import pytest

from evolve.errors import ConfigError, UnseenRequestError
from evolve.models.cache import CompletionCache, request_key
from evolve.models.cached import CachedModel
from evolve.models.recorded import RecordedModel, write_recording
from evolve.models.scripted import ScriptedModel, reply_call, reply_text
from evolve.protocols import ModelRequest
from evolve.records import Completion

SECRET_TEXT = "what the task says"
REQUEST = ModelRequest([{"role": "user", "content": SECRET_TEXT}], [], "t/0")


def record(folder: Path, name: str = "household.jsonl.xz") -> Path:
    """Play one request against a model and write down what it answered."""
    model = ScriptedModel(lambda _: reply_call("look", at="desk"), model_id="tiny")
    with CompletionCache(folder / "c.jsonl") as cache:
        asyncio.run(CachedModel(model, cache).complete(REQUEST, owner="a"))
        write_recording(folder / name, model.fingerprint, cache.entries(), "one request")
    return folder / name


@pytest.mark.parametrize("name", ["household.jsonl.xz", "household.jsonl"])
def test_recording_answers_as_the_model_did(tmp_path: Path, name: str) -> None:
    """A recorded request gets the recorded completion, under the recorded model's fingerprint."""
    recorded = RecordedModel(record(tmp_path, name))
    completion = asyncio.run(recorded.complete(REQUEST))
    assert [(call.tool, call.arguments) for call in completion.calls] == [("look", {"at": "desk"})]
    assert completion.usage.prompt_tokens > 0
    assert recorded.fingerprint.model_id == "tiny"
    assert (len(recorded), recorded.note) == (1, "one request")


def test_unseen_request_says_what_to_do(tmp_path: Path) -> None:
    """A request outside the recording is an error that names the file, the model and the way on."""
    recorded = RecordedModel(record(tmp_path))
    with pytest.raises(UnseenRequestError) as caught:
        asyncio.run(recorded.complete(ModelRequest([], [])))
    for part in ("household.jsonl.xz", "tiny", "--live"):
        assert part in str(caught.value)


def test_cache_over_a_recording_uses_the_same_keys(tmp_path: Path) -> None:
    """A run on a recording stores what a run on the model itself stores."""
    recorded = RecordedModel(record(tmp_path))
    with CompletionCache(tmp_path / "second.jsonl") as cache:
        asyncio.run(CachedModel(recorded, cache).complete(REQUEST, owner="a"))
    assert (tmp_path / "second.jsonl").read_bytes() == (tmp_path / "c.jsonl").read_bytes()


def test_equal_entries_are_equal_bytes(tmp_path: Path) -> None:
    """The order in which completions came does not change the recording."""
    entries: list[tuple[str, Completion]] = [("b", reply_text("2")), ("a", reply_text("1"))]
    fingerprint = ScriptedModel([]).fingerprint
    write_recording(tmp_path / "1.jsonl.xz", fingerprint, entries, "n")
    write_recording(tmp_path / "2.jsonl.xz", fingerprint, reversed(entries), "n")
    assert (tmp_path / "1.jsonl.xz").read_bytes() == (tmp_path / "2.jsonl.xz").read_bytes()


def test_recording_holds_no_messages(tmp_path: Path) -> None:
    """What the model was asked stands in the recording as digests only."""
    assert SECRET_TEXT.encode() not in lzma.decompress(record(tmp_path).read_bytes())


def test_header_comes_first(tmp_path: Path) -> None:
    """The first line gives schema version, fingerprint and note; each other line a key and a completion."""
    header, line = map(orjson.loads, record(tmp_path, "r.jsonl").read_bytes().splitlines())
    assert header.keys() == {"schema_version", "fingerprint", "note"}
    assert line.keys() == {"key", "completion"}


@pytest.mark.parametrize(
    "content",
    [b"", b"nonsense\n", b"[]\n", b'{"schema_version":2,"fingerprint":{},"note":""}\n', b'{"schema_version":1}\n'],
)
def test_other_files_are_refused(tmp_path: Path, content: bytes) -> None:
    """A file that is no recording of a known schema version is a configuration error that names it."""
    path = tmp_path / "r.jsonl"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=r"r\.jsonl"):
        RecordedModel(path)


def test_missing_or_damaged_file_is_refused(tmp_path: Path) -> None:
    """A recording that is not there, or whose compression is broken, is a configuration error that names it."""
    with pytest.raises(ConfigError, match=r"model\.recording names .*, and there is no such file"):
        RecordedModel(tmp_path / "absent.jsonl.xz")
    path = record(tmp_path)
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(ConfigError, match="is no recording"):
        RecordedModel(path)


def test_arguments_keep_the_order_in_which_the_model_wrote_them(tmp_path: Path) -> None:
    """A recording gives a call's arguments back in the model's own order, since environments answer by it."""
    said = reply_call("exchange_item", order_id="3951", new_sku="S")
    asyncio.run(_recorded_once(tmp_path, said))


async def _recorded_once(folder: Path, said: Completion) -> None:
    request = ModelRequest([{"role": "user", "content": "swap it"}], [])
    scripted = ScriptedModel([said])
    key = request_key(scripted.fingerprint.digest, request)
    write_recording(folder / "one.jsonl", scripted.fingerprint, [(key, said)], "a test")
    answer = await RecordedModel(folder / "one.jsonl").complete(request)
    assert list(answer.calls[0].arguments or {}) == ["order_id", "new_sku"]
