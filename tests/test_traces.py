import subprocess
import sys

import pytest

from evolve.errors import StoreError
from evolve.records import Episode, Observation, Opening, Score, Split, Step
from evolve.secrets import REMOVED
from evolve.traces import Traces

WRITE = """
import sys
from pathlib import Path
from evolve.records import Episode
from evolve.traces import Traces
episode = Episode.model_validate_json(sys.stdin.read())
for n in range(40):
    Traces(Path(sys.argv[1])).append(episode.model_copy(update={"episode_id": f"{sys.argv[2]}-{n}"}))
"""


def episode(number=1, text="looked", split=Split.TRAIN):
    return Episode(
        episode_id=f"e{number}",
        task_id=f"t{number}",
        environment="household",
        family="look",
        split=split,
        trial=0,
        model="m" * 64,
        harness="0123456789abcdef" * 4,
        status="done",
        stop="finished",
        opening=Opening(system="s", user="u"),
        steps=(Step(index=0, turn=0, text=text, observation=Observation(text="ok\u2028é")),),
        score=Score(value=1.0, success=True, version="1"),
    )


def test_an_episode_comes_back_from_the_place_it_was_written_to(tmp_path):
    """Path and offset are enough to read each of several episodes in one file."""
    traces = Traces(tmp_path)
    places = [traces.append(episode(n)) for n in (1, 2, 3)]
    assert [place.path for place in places] == ["household/train/0123456789ab.jsonl"] * 3
    assert [traces.read(*place) for place in places] == [episode(n) for n in (1, 2, 3)]
    assert list(traces.scan()) == list(zip(places, [episode(n) for n in (1, 2, 3)], strict=True))


def test_scan_keeps_to_the_split_it_was_asked_for(tmp_path):
    """Guard episodes are in files of their own."""
    traces = Traces(tmp_path)
    traces.append(episode(1))
    traces.append(episode(2, split=Split.GUARD))
    assert [found.episode_id for _, found in traces.scan("household", Split.GUARD)] == ["e2"]
    assert [found.episode_id for _, found in traces.scan("other")] == []


def test_a_torn_last_line_is_forgiven_and_the_next_episode_takes_its_place(tmp_path):
    """A crash in the middle of a write loses that episode only."""
    traces = Traces(tmp_path)
    first = traces.append(episode(1))
    torn = traces.append(episode(2, text="x" * 200_000))
    file = tmp_path / first.path
    with file.open("r+b") as stream:
        stream.truncate(file.stat().st_size - 7)
    assert [found.episode_id for _, found in traces.scan()] == ["e1"]
    third = traces.append(episode(3))
    assert third.offset == torn.offset
    assert [found.episode_id for _, found in traces.scan()] == ["e1", "e3"]


def test_a_torn_middle_line_is_an_error_that_names_file_and_line(tmp_path):
    """Damage in the middle of a file is never passed over in silence."""
    traces = Traces(tmp_path)
    path, offset = [traces.append(episode(n)) for n in (1, 2, 3)][1]
    file = tmp_path / path
    content = file.read_bytes()
    file.write_bytes(content[:offset] + b"{}" + content[offset + 2 :])
    with pytest.raises(StoreError, match=r"0123456789ab\.jsonl, line 2"):
        list(traces.scan())
    with pytest.raises(StoreError, match=rf"byte {offset}"):
        traces.read(path, offset)


def test_keys_never_reach_the_disk(tmp_path):
    """Key-shaped text and the caller's own secrets are replaced before writing; the episode stays readable."""
    key = "sk-" + "a1B2" * 8
    traces = Traces(tmp_path, secrets=['my "quoted" secret'])
    place = traces.append(episode(1, text=f'use {key} or my "quoted" secret'))
    content = (tmp_path / place.path).read_text()
    assert key not in content
    assert "quoted" not in content
    assert traces.read(*place).steps[0].text == f"use {REMOVED} or {REMOVED}"


def test_two_processes_at_once_do_not_mix_their_lines(tmp_path):
    """Lines of concurrent writers stay whole and none is lost."""
    command = [sys.executable, "-c", WRITE, str(tmp_path)]
    writers = [subprocess.Popen([*command, name], stdin=subprocess.PIPE, text=True) for name in "ab"]
    for writer in writers:
        writer.stdin.write(episode(1, text="y" * 9000).model_dump_json())
        writer.stdin.close()
    assert [writer.wait() for writer in writers] == [0, 0]
    found = {episode.episode_id for _, episode in Traces(tmp_path).scan()}
    assert found == {f"{name}-{n}" for name in "ab" for n in range(40)}


def test_a_name_that_would_leave_the_folder_is_refused(tmp_path):
    """An environment's name never becomes a path."""
    with pytest.raises(StoreError, match="no file name"):
        Traces(tmp_path).append(episode(1).model_copy(update={"environment": "../x"}))


def test_a_missing_file_and_an_unwritable_folder_say_what_is_wrong(tmp_path):
    """The operating system's word and the file's name reach the user."""
    with pytest.raises(StoreError, match=r"nowhere\.jsonl: No such file"):
        Traces(tmp_path).read("nowhere.jsonl", 0)
    (tmp_path / "household").write_text("a file where a folder should be")
    with pytest.raises(StoreError, match="household"):
        Traces(tmp_path).append(episode(1))
