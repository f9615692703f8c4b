"""A workspace is made whole, or nothing is touched; in a user's repository the user's files stay."""

import shlex
import subprocess
from pathlib import Path

import pytest

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


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository of the user's, with a .gitignore whose last line has no end, in its one commit."""
    root = tmp_path / "theirs"
    git(tmp_path, "init", "-q", str(root))
    (root / ".gitignore").write_text("*.log\n.env")
    git(root, "add", ".")
    git(root, "-c", "user.name=u", "-c", "user.email=u@localhost", "commit", "-qm", "mine")
    return root


def test_gitignore_of_the_user_keeps_its_lines_and_gets_ours(evolve, repository):
    """The lines that lack stand below a comment, each once, and are committed with the rest."""
    assert evolve("init", repository, "--env", "household").code == 0
    content = (repository / ".gitignore").read_text()
    assert content.startswith("*.log\n.env\n# what evolve keeps beside the record\n/.evolve/\n")
    assert content.splitlines().count(".env") == 1
    assert content.endswith("__pycache__/\n")
    assert git(repository, "show", "HEAD:.gitignore") == content
    assert git(repository, "status", "--porcelain") == ""


def test_gitignore_before_the_first_commit_goes_into_it(evolve, tmp_path):
    """Where nothing was ever committed there is nothing that it could differ from."""
    git(tmp_path, "init", "-q")
    (tmp_path / ".gitignore").write_text("*.log\n")
    assert evolve("init", tmp_path, "--env", "household").code == 0
    assert git(tmp_path, "show", "HEAD:.gitignore").startswith("*.log\n# what evolve")


@pytest.mark.parametrize("state", ["changed", "staged", "untracked", "ignored"])
def test_gitignore_with_changes_is_to_be_committed_first(evolve, repository, state):
    """What the user has not committed is not committed for them: exit code 2, and nothing is written."""
    if state in ("changed", "staged"):
        (repository / ".gitignore").write_text("*.log\n*.tmp\n")
    if state == "staged":
        git(repository, "add", ".")
    if state in ("untracked", "ignored"):
        git(repository, "rm", "-q", "--cached", ".gitignore")
        git(repository, "-c", "user.name=u", "-c", "user.email=u@localhost", "commit", "-qm", "away")
    if state == "ignored":
        (repository / ".git/info/exclude").write_text(".gitignore\n")
    before = (repository / ".gitignore").read_text(), git(repository, "status", "--porcelain")
    ended = evolve("init", repository, "--env", "household")
    assert (ended.code, ".gitignore" in ended.err, "commit it first" in ended.err) == (2, True, True)
    assert before == ((repository / ".gitignore").read_text(), git(repository, "status", "--porcelain"))
    assert sorted(path.name for path in repository.iterdir()) == [".git", ".gitignore"]


@pytest.mark.parametrize("path", [".env.example", "prompts/brief.md.j2", "traces", ".gitignore/x"])
def test_other_files_in_the_way_are_named(evolve, tmp_path, path):
    """A file where one of ours or its folder would be ends with 2; the message does not ask for an empty folder."""
    (tmp_path / path).parent.mkdir(exist_ok=True)
    (tmp_path / path).write_text("mine")
    ended = evolve("init", tmp_path, "--env", "household")
    assert (ended.code, path.removesuffix("/x") in ended.err, "empty folder" in ended.err) == (2, True, False)
    assert [file for file in tmp_path.rglob("*") if file.is_file()] == [tmp_path / path]


def test_link_in_the_way_is_not_followed(evolve, tmp_path):
    """A link that points nowhere is no free name: nothing is written through it."""
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / "evolve.toml").symlink_to(tmp_path / "elsewhere")
    ended = evolve("init", tmp_path / "w", "--env", "household")
    assert (ended.code, "evolve.toml" in ended.err) == (2, True)
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("inside", ["", "w", "objects"])
def test_bare_repository_is_refused(evolve, tmp_path, inside):
    """Nothing there is in a work tree: exit code 2, and no second repository appears in it."""
    bare = tmp_path / "bare.git"
    git(tmp_path, "init", "-q", "--bare", str(bare))
    before = sorted(bare.rglob("*"))
    ended = evolve("init", bare / inside, "--env", "household")
    assert (ended.code, f"{bare} is a bare repository" in ended.err) == (2, True)
    assert sorted(bare.rglob("*")) == before


def test_next_commands_bear_a_path_with_blanks(evolve, tmp_path):
    """What is to be typed next can be pasted as it stands."""
    place = tmp_path / "my desk"
    quoted = f"-C {shlex.quote(str(place))}`"
    assert evolve("init", place, "--env", "household").out.count(quoted) == 2
    added = evolve("init", place, "--env", "service_desk").out
    assert f"`evolve run -C {shlex.quote(str(place))} --env service_desk`" in added


def test_line_ends_and_names_as_a_user_sets_them_stop_nothing(evolve, tmp_path):
    """Files are committed as they were written, under the name of evolve where the user's is empty."""
    git(tmp_path, "init", "-q")
    for key, value in (("core.autocrlf", "true"), ("core.safecrlf", "true"), ("user.name", "")):
        git(tmp_path, "config", key, value)
    assert evolve("init", tmp_path, "--env", "household").code == 0
    assert git(tmp_path, "status", "--porcelain") == ""
    assert git(tmp_path, "log", "-1", "--format=%an").strip() == "evolve"


UNFINISHED = {
    "merge": ("a merge is unfinished", ("merge", "theirs")),
    "resolved merge": ("a merge is unfinished", ("merge", "--no-commit", "--strategy=ours", "theirs")),
    "cherry-pick": ("a cherry-pick is unfinished", ("cherry-pick", "theirs")),
    "revert": ("a revert is unfinished", ("revert", "--no-edit", "HEAD~1")),
    "rebase": ("a rebase is unfinished", ("rebase", "theirs")),
}


@pytest.mark.parametrize("begun", UNFINISHED)
def test_in_the_middle_of_a_merge_nothing_is_written(evolve, repository, begun):
    """What the user has begun in git is to be finished first: exit code 2, and files, index and state are as before."""
    told, command = UNFINISHED[begun]
    for name, value in (("name", "u"), ("email", "u@localhost")):
        git(repository, "config", f"user.{name}", value)
    _diverge(repository)
    subprocess.run(["git", "-C", str(repository), *command], check=False, capture_output=True)
    before = (git(repository, "status"), git(repository, "rev-parse", "HEAD"))
    ended = evolve("init", repository, "--env", "household")
    assert (ended.code, ended.out) == (2, "")
    assert f"{told} in {repository}; finish or abort it first" in ended.err
    assert (git(repository, "status"), git(repository, "rev-parse", "HEAD")) == before
    assert sorted(path.name for path in repository.iterdir()) == [".git", ".gitignore", "file"]


def _diverge(repository: Path) -> None:
    """Change one file twice on the user's branch, and otherwise on one named `theirs`."""
    file = repository / "file"
    for branch, text in (("-", "1"), ("theirs", "2"), ("-", "3")):
        if branch == "theirs":
            git(repository, "checkout", "-qb", branch)
        elif file.exists():
            git(repository, "checkout", "-q", branch)
        file.write_text(text)
        git(repository, "add", "file")
        git(repository, "commit", "-qm", text)


def test_where_another_git_is_at_work_nothing_is_written(evolve, repository):
    """Its lock would keep the commit away: exit code 2, and what lies there is as before."""
    (repository / ".git/index.lock").touch()
    ended = evolve("init", repository, "--env", "household")
    assert (ended.code, "left .git/index.lock" in ended.err) == (2, True)
    assert sorted(path.name for path in repository.iterdir()) == [".git", ".gitignore"]
