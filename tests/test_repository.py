import os
import shutil
import subprocess
import sys
from datetime import UTC, datetime

import pytest

from evolve.errors import RepositoryError
from evolve.records import Candidate, Layer, Proposal
from evolve.repository import (
    Trailers,
    accept_candidate,
    add_worktree,
    candidate_ref,
    freeze,
    harness_folder,
    init_repository,
    land_files,
    open_repository,
    read_tag,
    remove_worktree,
    run_branch,
    tags,
)

FOLDER = harness_folder("household")
DATE = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SEED = {"harness.toml": b"schema = 1\n", "action.py": b"", "skills/a.md": b"one\n", "skills/b.md": b"b\n"}
BETTER = {"harness.toml": b"schema = 1\n", "action.py": b"# new\n", "skills/a.md": b"two\n", "skills/c.md": b"c\n"}
TRAILERS = Trailers(run="r1", candidate="r1-c01", verdict="accept", effect="+0.100", evidence="ab" * 32)


@pytest.fixture(scope="module")
def seeded(tmp_path_factory):
    root = tmp_path_factory.mktemp("seeded") / "ws"
    with init_repository(root) as repository:
        land_files(repository, FOLDER, SEED, message="Seed harness", date=DATE)
    return root


@pytest.fixture
def repository(seeded, tmp_path):
    shutil.copytree(seeded, tmp_path / "ws")
    with open_repository(tmp_path / "ws") as repository:
        yield repository


def git(repository, *arguments):
    return subprocess.run(["git", *arguments], cwd=repository.root, check=True, capture_output=True, text=True).stdout


def propose(repository, files, *, parent=None, number=1):
    """Commit files as a candidate on the user's head or on another candidate, keep it, and describe it."""
    parent = parent or repository.head_commit()
    name = f"r1-c{number:02}"
    trailers = Trailers(run="r1", candidate=name)
    commit = repository.commit_files(parent, FOLDER, files, message="Try it", date=DATE, trailers=trailers)
    repository.update_ref(candidate_ref(name), commit, None)
    return Candidate(
        candidate_id=name,
        run_id="r1",
        number=number,
        environment="household",
        parent_commit=parent,
        commit=commit,
        parent_harness="p",
        harness="h",
        proposer="mechanic",
        proposal=Proposal(hypothesis="it will be better", layer=Layer.SKILL, pattern_id="p1"),
        files=tuple(files),
    )


def accept(repository, candidate):
    return accept_candidate(repository, candidate, message="Keep it", trailers=TRAILERS, date=DATE)


def work_tree(repository):
    folder = repository.root / FOLDER
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_a_commit_made_twice_has_one_id_and_touches_neither_index_nor_work_tree(repository):
    """A killed and resumed run makes the same commits, and the user notices nothing."""
    (repository.root / "draft.txt").write_text("the user's own")
    git(repository, "add", "draft.txt")
    before = git(repository, "status", "--porcelain"), git(repository, "ls-files", "--stage")
    first, second = propose(repository, BETTER).commit, propose(repository, BETTER).commit
    assert first == second
    assert repository.read_files(first, FOLDER) == BETTER
    assert (git(repository, "status", "--porcelain"), git(repository, "ls-files", "--stage")) == before
    assert repository.differing_paths("HEAD", first) == [
        f"{FOLDER}/{name}" for name in ("action.py", "skills/a.md", "skills/b.md", "skills/c.md")
    ]


def test_accept_is_one_commit_on_the_users_branch_with_the_work_tree_brought_along(repository):
    """Accepted files arrive in branch, index and work tree, with trailers, and other staged work is left staged."""
    candidate = propose(repository, BETTER)
    before = repository.head_commit()
    (repository.root / "draft.txt").write_text("the user's own")
    git(repository, "add", "draft.txt")
    commit = accept(repository, candidate)
    assert git(repository, "log", "--format=%H %P", "-1", "main").split() == [commit, before]
    assert repository.trailers(commit) == TRAILERS
    assert work_tree(repository) == BETTER
    assert git(repository, "status", "--porcelain") == "A  draft.txt\n"


def test_accepting_again_changes_nothing(repository):
    """A second accept returns the first one's commit, also after later commits of the user."""
    candidate = propose(repository, BETTER)
    commit = accept(repository, candidate)
    git(repository, "-c", "user.name=u", "-c", "user.email=u@u", "commit", "-q", "--allow-empty", "-m", "later")
    assert accept(repository, candidate) == commit
    assert git(repository, "rev-list", "--count", "HEAD") == "4\n"


def test_accept_names_the_candidate_that_must_come_first(repository):
    """A candidate built on another one cannot be accepted alone; both in order can."""
    first = propose(repository, BETTER)
    second = propose(repository, {**BETTER, "skills/d.md": b"d\n"}, parent=first.commit, number=2)
    with pytest.raises(RepositoryError, match="accept r1-c01 first"):
        accept(repository, second)
    assert work_tree(repository) == SEED
    accept(repository, first)
    accept(repository, second)
    assert set(work_tree(repository)) == {*BETTER, "skills/d.md"}


def test_accept_names_what_the_user_changed_since(repository):
    """A harness that moved on since the test is not overwritten; the message names the files."""
    candidate = propose(repository, BETTER)
    land_files(repository, FOLDER, {**SEED, "action.py": b"# mine\n"}, message="Mine", date=DATE)
    with pytest.raises(RepositoryError, match=r"household/action\.py changed since"):
        accept(repository, candidate)


@pytest.mark.parametrize("edit", ["action.py", "skills/new.md"])
def test_accept_refuses_a_harness_folder_with_uncommitted_changes(repository, edit):
    """Edited and untracked files in the folder are named and left alone."""
    candidate = propose(repository, BETTER)
    (repository.root / FOLDER / edit).write_text("# in progress\n")
    head = repository.head_commit()
    with pytest.raises(RepositoryError, match=f"uncommitted changes .*{edit}"):
        accept(repository, candidate)
    assert repository.head_commit() == head
    assert (repository.root / FOLDER / edit).read_text() == "# in progress\n"


def test_accept_refuses_a_detached_head_and_an_unfinished_merge(repository):
    """A commit is never put where the user would lose sight of it."""
    candidate = propose(repository, BETTER)
    (repository.root / ".git" / "MERGE_HEAD").write_text(f"{repository.head_commit()}\n")
    with pytest.raises(RepositoryError, match="a merge is unfinished"):
        accept(repository, candidate)
    (repository.root / ".git" / "MERGE_HEAD").unlink()
    git(repository, "checkout", "-q", "--detach")
    with pytest.raises(RepositoryError, match="detached"):
        accept(repository, candidate)


def test_a_candidate_without_a_change_is_refused(repository):
    """An empty patch does not become a commit."""
    with pytest.raises(RepositoryError, match="changes nothing"):
        accept(repository, propose(repository, SEED))


SHIM = """#!/bin/sh
case " $* " in *" $DIE_AT "*) touch "$DIED"; {act} kill -9 $PPID; exit 1;; esac
exec {git} "$@"
"""
DEATHS = ["hash-object", "update-index", "write-tree", "commit-tree", "update-ref", "restore"]


def accept_and_die(repository, candidate, monkeypatch, tmp_path, *, at, act=""):
    """Accept in a child process whose git kills it -9 when it is about to run the command `at`."""
    shim = tmp_path / "bin" / "git"
    shim.parent.mkdir()
    shim.write_text(SHIM.format(act=act, git=shutil.which("git")))
    shim.chmod(0o755)
    with monkeypatch.context() as patch:
        patch.setenv("PATH", f"{shim.parent}:{os.environ['PATH']}")
        patch.setenv("DIE_AT", at)
        patch.setenv("DIED", str(tmp_path / "died"))
        child = os.fork()
        if child == 0:
            try:
                accept(repository, candidate)
            finally:
                os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -9
    assert (tmp_path / "died").exists()


@pytest.mark.parametrize("at", DEATHS)
def test_accept_killed_before_any_of_its_writes_completes_when_run_again(repository, monkeypatch, tmp_path, at):
    """After kill -9 the same accept gives the commit that an undisturbed one gives, once, and a clean tree."""
    candidate = propose(repository, BETTER)
    accept_and_die(repository, candidate, monkeypatch, tmp_path, at=at)
    commit = accept(repository, candidate)
    assert work_tree(repository) == BETTER
    assert git(repository, "status", "--porcelain") == ""
    assert git(repository, "rev-list", "--count", "HEAD") == "3\n"
    expected = repository.commit_files(f"{commit}^", FOLDER, BETTER, message="Keep it", date=DATE, trailers=TRAILERS)
    assert commit == expected
    git(repository, "fsck", "--strict")


def test_a_half_written_work_tree_is_completed(repository, monkeypatch, tmp_path):
    """A file that git had begun to write when it was killed is written whole."""
    candidate = propose(repository, BETTER)
    folder = repository.root / FOLDER
    act = f'printf "tw" > {folder}/skills/a.md; rm {folder}/skills/b.md;'
    accept_and_die(repository, candidate, monkeypatch, tmp_path, at="restore", act=act)
    accept(repository, candidate)
    assert work_tree(repository) == BETTER
    assert git(repository, "status", "--porcelain") == ""


def test_an_edit_made_after_a_killed_accept_is_not_overwritten(repository, monkeypatch, tmp_path):
    """Completing a cut-off accept stops at a file that the user changed since, and says how to go on."""
    candidate = propose(repository, BETTER)
    accept_and_die(repository, candidate, monkeypatch, tmp_path, at="restore")
    (repository.root / FOLDER / "action.py").write_text("# the user's\n")
    with pytest.raises(RepositoryError, match=r"action\.py changed since"):
        accept(repository, candidate)
    assert (repository.root / FOLDER / "action.py").read_text() == "# the user's\n"
    git(repository, "checkout", "HEAD", "--", f"{FOLDER}/action.py")
    accept(repository, candidate)
    assert work_tree(repository) == BETTER


def test_the_hooks_of_the_repository_do_not_run(repository):
    """Neither hooks nor an fsmonitor program of the repository run because of us."""
    trap = repository.root / ".git" / "trap"
    script = f"#!/bin/sh\ntouch {trap}\n"
    for name in ("reference-transaction", "post-checkout", "post-index-change", "pre-commit", "monitor"):
        hook = repository.root / ".git" / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(script)
        hook.chmod(0o755)
    git(repository, "config", "core.fsmonitor", str(repository.root / ".git" / "hooks" / "monitor"))
    accept(repository, propose(repository, BETTER))
    assert repository.changed_paths() == []
    assert not trap.exists()


def test_line_end_conversion_of_the_user_does_not_change_what_is_committed(repository):
    """With autocrlf the work tree gets the user's line ends while the committed bytes stay as they were."""
    git(repository, "config", "core.autocrlf", "true")
    commit = accept(repository, propose(repository, BETTER))
    assert repository.read_files(commit, FOLDER) == BETTER
    assert (repository.root / FOLDER / "skills/a.md").read_bytes() == b"two\r\n"
    assert repository.changed_paths(FOLDER) == []


def test_commits_are_signed_by_the_user_where_git_knows_one(repository, monkeypatch):
    """The user's name stands on commits; without one it is evolve's, and no configuration is written."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    anonymous = repository.commit_files("HEAD", FOLDER, BETTER, message="m", date=DATE)
    assert git(repository, "log", "-1", "--format=%an <%ae> %aI", anonymous) == (
        "evolve <evolve@localhost> 2026-01-02T03:04:05+00:00\n"
    )
    assert "[user]" not in (repository.root / ".git" / "config").read_text()
    git(repository, "config", "user.name", "Ada")
    git(repository, "config", "user.email", "ada@example.org")
    known = repository.commit_files("HEAD", FOLDER, BETTER, message="m", date=DATE)
    assert git(repository, "log", "-1", "--format=%an <%ae>", known) == "Ada <ada@example.org>\n"


def test_a_ref_moves_only_from_where_it_was_said_to_be(repository):
    """The run's branch is compared and swapped; a move that was done already is done."""
    candidate, branch = propose(repository, BETTER), run_branch("r1")
    repository.update_ref(branch, candidate.parent_commit, None)
    with pytest.raises(RepositoryError, match="evolve/r1 is at"):
        repository.update_ref(branch, candidate.commit, candidate.commit)
    repository.update_ref(branch, candidate.commit, candidate.parent_commit)
    repository.update_ref(branch, candidate.commit, candidate.parent_commit)
    assert repository.resolve(branch) == candidate.commit


@pytest.mark.parametrize("path", ["../x", "/etc/x", "a/../b", ".git/config", "a//b", "", "skills/.GIT/x"])
def test_a_path_that_leaves_the_folder_is_never_committed(repository, path):
    """Paths are relative, plain and out of git's own folder."""
    with pytest.raises(RepositoryError, match="no path inside"):
        repository.commit_files("HEAD", FOLDER, {path: b""}, message="m", date=DATE)


@pytest.mark.parametrize("name", ["../x", "a/b", "", "-x", "a..b", "x.lock", "a b"])
def test_a_name_that_is_no_name_is_refused(name):
    """Environments, runs and candidates become folders and refs, so their names are plain."""
    for use in (harness_folder, run_branch, candidate_ref):
        with pytest.raises(RepositoryError, match="cannot name"):
            use(name)


def test_a_link_in_a_harness_folder_is_an_error(repository):
    """A harness with a symbolic link does not read."""
    (repository.root / FOLDER / "link").symlink_to("/etc/passwd")
    git(repository, "add", "-A")
    git(repository, "-c", "user.name=u", "-c", "user.email=u@u", "commit", "-qm", "link")
    with pytest.raises(RepositoryError, match="link or a submodule"):
        repository.read_files("HEAD", FOLDER)


def test_odd_content_and_names_survive_the_way_through_git(repository):
    """Bytes are kept whatever they are: line ends, no last line end, empty, binary, names with spaces and accents."""
    files = {"a b.md": b"x\r\ny", "é.md": b"", "*": b"\xff\x00\n\n", "z": b"100644 blob 3\tx\n"}
    commit = repository.commit_files("HEAD", FOLDER, files, message="m", date=DATE)
    assert repository.read_files(commit, FOLDER) == files


def test_export_holds_the_files_and_nothing_of_git(repository, tmp_path):
    """A proposer's copy has no history, and an existing folder is not overwritten."""
    target = tmp_path / "out" / "copy"
    repository.export(propose(repository, BETTER).commit, FOLDER, target)
    found = {str(file.relative_to(target)): file.read_bytes() for file in target.rglob("*") if file.is_file()}
    assert found == BETTER
    assert list(target.parent.iterdir()) == [target]
    with pytest.raises(RepositoryError, match="exists already"):
        repository.export("HEAD", FOLDER, target)


def test_diff_reads_as_a_patch_whatever_the_users_settings(repository):
    """The diff of a candidate is the same unified text for everybody."""
    candidate = propose(repository, BETTER)
    plain = repository.diff(candidate.parent_commit, candidate.commit, FOLDER)
    for setting in ("diff.noprefix=true", "diff.external=false", "color.ui=always", "diff.renames=copies"):
        git(repository, "config", *setting.split("="))
    assert repository.diff(candidate.parent_commit, candidate.commit, FOLDER) == plain
    assert "--- a/harness_artifacts/household/skills/a.md" in plain
    assert "-one\n+two" in plain


def test_a_worktree_is_made_whatever_a_killed_attempt_left(repository, tmp_path):
    """A locked entry without a folder, and a folder without an entry, are both replaced."""
    commit, path = propose(repository, BETTER).commit, tmp_path / "trees" / "c1"
    add_worktree(repository, commit, path)
    git(repository, "worktree", "lock", "--reason", "initializing", str(path))
    shutil.rmtree(path)
    add_worktree(repository, commit, path)
    shutil.rmtree(repository.root / ".git" / "worktrees")
    add_worktree(repository, commit, path)
    assert (path / FOLDER / "skills/c.md").read_bytes() == b"c\n"
    remove_worktree(repository, path)
    remove_worktree(repository, path)
    assert not path.exists()
    assert git(repository, "worktree", "list").count("\n") == 1


@pytest.mark.parametrize("gitdir", [None, "", "/half/of/a/pa"])
def test_half_an_entry_of_a_killed_git_is_not_left(repository, tmp_path, gitdir):
    """What git wrote before it was killed is gone after the next use of the name; an entry of the user's stays."""
    commit, path = propose(repository, BETTER).commit, tmp_path / "trees" / "c1"
    git(repository, "worktree", "add", "--detach", "--quiet", str(tmp_path / "users" / "c1"), commit)
    entries = repository.root / ".git" / "worktrees"
    half = entries / "c11"
    half.mkdir()
    (half / "locked").touch()
    if gitdir is not None:
        (half / "gitdir").write_text(gitdir)
    add_worktree(repository, commit, path)
    remove_worktree(repository, path)
    assert [entry.name for entry in entries.iterdir()] == ["c1"]
    git(repository, "fsck", "--strict")


def test_a_frozen_harness_is_a_tag_with_its_manifest(repository):
    """The manifest comes back as it was written; the same freeze is done already, another one is refused."""
    manifest = {"harness": "ab" * 32, "nested": {"text": "a\n\nb é", "n": 1.5}}
    freeze(repository, "HEAD", "evolve/household/v1", manifest, date=DATE)
    freeze(repository, "HEAD", "evolve/household/v1", manifest, date=DATE)
    assert read_tag(repository, "evolve/household/v1") == (repository.head_commit(), manifest)
    assert tags(repository, "household") == ["evolve/household/v1"]
    assert git(repository, "cat-file", "-t", "evolve/household/v1") == "tag\n"
    with pytest.raises(RepositoryError, match="seals something else"):
        freeze(repository, "HEAD", "evolve/household/v1", {**manifest, "harness": "x"}, date=DATE)
    git(repository, "tag", "evolve/household/light")
    with pytest.raises(RepositoryError, match="carries no manifest"):
        read_tag(repository, "evolve/household/light")


def test_trailers_survive_the_way_through_a_message():
    """What is written is read back; other tools' trailers and the text above are passed over."""
    assert Trailers.parse(TRAILERS.under("Subject\n\nEvolve-Run: not this\n\nBody")) == TRAILERS
    assert Trailers.parse("Subject\n\nSigned-off-by: A\nEvolve-Run: r2\nEvolve-Unknown: x\n") == Trailers(run="r2")
    assert Trailers.parse("Subject only") == Trailers()
    assert TRAILERS.under("Subject").splitlines()[2:4] == ["Evolve-Run: r1", "Evolve-Candidate: r1-c01"]
    assert "\nEvolve-Verdict: two lines\n" in Trailers(run="r", verdict="two\nlines").under("S")


def test_a_folder_that_cannot_be_a_repository_says_why(tmp_path, monkeypatch):
    """No repository, a folder inside one, a bare one, one without commits, and git's own variables."""
    with pytest.raises(RepositoryError, match="not the top folder of a git repository"):
        open_repository(tmp_path)
    subprocess.run(["git", "init", "-q", "--bare", tmp_path / "bare"], check=True)
    with pytest.raises(RepositoryError, match="bare repository"):
        open_repository(tmp_path / "bare")
    subprocess.run(["git", "init", "-q", tmp_path / "young"], check=True)
    with pytest.raises(RepositoryError, match="no commit yet"):
        open_repository(tmp_path / "young")
    (tmp_path / "young" / "inside").mkdir()
    with pytest.raises(RepositoryError, match="not the top folder"):
        open_repository(tmp_path / "young" / "inside")
    monkeypatch.setenv("GIT_INDEX_FILE", "elsewhere")
    with pytest.raises(RepositoryError, match="GIT_INDEX_FILE is set"):
        init_repository(tmp_path / "young")


def test_without_the_git_program_the_message_says_so(tmp_path):
    """A machine without git gets a sentence, not an import error."""
    code = "from pathlib import Path; from evolve.repository import open_repository; open_repository(Path('.'))"
    environment = {**os.environ, "PATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert "RepositoryError: the git program was not found" in done.stderr


def test_no_helper_process_outlives_a_closed_repository(tmp_path):
    """Reading many files leaves no `git cat-file` behind."""
    with init_repository(tmp_path / "ws") as repository:
        land_files(repository, FOLDER, SEED, message="m", date=DATE)
        repository.read_files("HEAD", FOLDER)
    children = subprocess.run(["ps", "--ppid", str(os.getpid()), "-o", "args="], capture_output=True, text=True).stdout
    assert "cat-file" not in children
