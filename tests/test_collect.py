import os
import socket

import pytest

from evolve.errors import RepositoryError
from evolve.repository import Collected, collect


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "edited"
    (folder / "skills").mkdir(parents=True)
    (folder / "action.py").write_text("# é\n")
    (folder / "skills" / "a.md").write_text("a\n")
    return folder


KEPT = {"action.py": "# é\n".encode(), "skills/a.md": b"a\n"}


def reasons(collected):
    return dict(collected.refused)


def test_plain_files_are_read_back_and_nothing_of_git_or_python(folder):
    """The files of the copy come back by relative path; .git and __pycache__ are passed over."""
    for name in (".git", "skills/__pycache__"):
        (folder / name).mkdir()
        (folder / name / "config").write_bytes(b"\0")
    assert collect(folder) == Collected(KEPT, [])


def test_links_out_of_the_folder_are_refused(folder, tmp_path):
    """Symbolic links to files and folders and hard links bring nothing in."""
    secret = tmp_path / "gold.txt"
    secret.write_text("gold")
    (folder / "soft").symlink_to(secret)
    (folder / "tree").symlink_to(tmp_path)
    os.link(secret, folder / "skills" / "hard")
    found = collect(folder)
    assert found.files == KEPT
    assert reasons(found) == {
        "soft": "a symbolic link, not a regular file",
        "tree": "a symbolic link, not a regular file",
        "skills/hard": "a hard link to another file",
    }


def test_pipes_and_sockets_are_refused_without_waiting(folder):
    """Special files do not hang the host."""
    os.mkfifo(folder / "pipe")
    with socket.socket(socket.AF_UNIX) as end:
        here = os.getcwd()
        os.chdir(folder)  # the path of a socket is short
        end.bind("sock")
        os.chdir(here)
    assert reasons(collect(folder)) == {
        "pipe": "a named pipe, not a regular file",
        "sock": "a socket, not a regular file",
    }


def test_names_that_some_systems_take_for_one_are_refused(folder):
    """Names that collide in case or accents, in files or folders, are refused on both sides."""
    (folder / "Action.PY").write_text("")
    (folder / "SKILLS").mkdir()
    (folder / "SKILLS" / "z.md").write_text("")
    found = collect(folder)
    assert found.files == {}
    assert set(reasons(found)) == {"Action.PY", "action.py", "skills/a.md", "SKILLS/z.md"}


def test_names_that_cannot_be_stored_everywhere_are_refused(folder):
    """Backslashes, control characters, names that are not UTF-8 and other spellings of .git are refused."""
    for name in (b"a\\b", b"line\nend", b"\xff", b".GIT"):
        (folder / os.fsdecode(name)).write_text("")
    found = collect(folder)
    assert found.files == KEPT
    assert len(found.refused) == 4


def test_what_is_not_small_text_is_refused(folder):
    """Files that are too large, binary or not UTF-8 are refused; the largest allowed one is not."""
    (folder / "large").write_bytes(b"x" * (256 * 1024 + 1))
    (folder / "limit").write_bytes(b"x" * 256 * 1024)
    (folder / "nul").write_bytes(b"a\0b")
    (folder / "latin").write_bytes(b"\xe9")
    found = collect(folder)
    assert set(found.files) == {*KEPT, "limit"}
    assert reasons(found) == {
        "large": "larger than 256 KB",
        "nul": "contains a NUL byte",
        "latin": "not UTF-8 text",
    }


def test_at_most_64_files_are_taken(folder):
    """The files beyond the limit are refused by name."""
    for number in range(70):
        (folder / f"n{number:02}").write_text("")
    found = collect(folder)
    assert len(found.files) == 64
    assert set(reasons(found).values()) == {"more than 64 files"}
    assert len(found.files) + len(found.refused) == 72


def test_a_flood_of_entries_is_not_read_to_its_end(folder):
    """Thousands of files or folders end the reading with one refusal that says so."""
    for number in range(2100):
        (folder / f"d{number}").mkdir()
    assert reasons(collect(folder))["."].startswith("more than 2000 folders")


def test_folders_that_are_too_deep_are_refused(folder):
    """The walk ends at a depth that no harness has."""
    folder.joinpath(*"abcdefghijkl").mkdir(parents=True)
    folder.joinpath(*"abcdefghijkl", "x").write_text("")
    found = collect(folder)
    assert found.files == KEPT
    assert reasons(found) == {"a/b/c/d/e/f/g/h": "folders deeper than 8"}


def test_a_copy_that_was_removed_or_replaced_by_a_link_is_an_error(folder, tmp_path):
    """An empty answer never stands for a missing folder."""
    (tmp_path / "link").symlink_to(folder)
    for path in (tmp_path / "gone", tmp_path / "link", folder / "action.py"):
        with pytest.raises(RepositoryError, match="is no folder"):
            collect(path)
