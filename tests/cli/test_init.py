"""A workspace is made whole, or nothing is touched."""

import subprocess
from pathlib import Path

from evolve.repository import open_repository


def git(root: Path, *arguments: str) -> str:
    return subprocess.run(["git", "-C", str(root), *arguments], check=True, capture_output=True, text=True).stdout


def test_new_workspace_is_a_clean_repository_with_everything_committed(evolve, tmp_path):
    """`init` makes a repository with the starting files in one commit and nothing left to commit."""
    ended = evolve("init", tmp_path / "w", "--json")
    assert ended.code == 0
    with open_repository(tmp_path / "w") as repository:
        assert repository.changed_paths() == []
        assert repository.head_commit() == ended.document["commit"]
    tracked = git(tmp_path / "w", "ls-files").split()
    for path in ("evolve.toml", ".env.example", ".gitignore", "harness_artifacts/household/harness.toml"):
        assert path in tracked
    assert any(path.startswith("prompts/") for path in tracked)


def test_folder_with_one_of_the_files_is_refused_and_stays_as_it_is(evolve, tmp_path):
    """A conflicting file ends `init` with 2; nothing is written beside it, no repository is made."""
    (tmp_path / "evolve.toml").write_text("mine")
    ended = evolve("init", tmp_path)
    assert ended.code == 2
    assert "evolve.toml" in ended.err
    assert [path.name for path in tmp_path.iterdir()] == ["evolve.toml"]
    assert (tmp_path / "evolve.toml").read_text() == "mine"


def test_existing_repository_keeps_what_is_staged(evolve, tmp_path):
    """In a user's repository `init` commits its own files alone: other files stay staged or untracked."""
    git(tmp_path, "init", "-q")
    (tmp_path / "staged.txt").write_text("s")
    (tmp_path / "loose.txt").write_text("l")
    git(tmp_path, "add", "staged.txt")
    assert evolve("init", tmp_path).code == 0
    assert git(tmp_path, "status", "--porcelain").split("\n")[:2] == ["A  staged.txt", "?? loose.txt"]
    assert "staged.txt" not in git(tmp_path, "ls-tree", "-r", "--name-only", "HEAD")


def test_file_in_place_of_a_folder_is_refused(evolve, tmp_path):
    """A path that is a file ends with 2."""
    (tmp_path / "file").write_text("x")
    assert evolve("init", tmp_path / "file").code == 2
