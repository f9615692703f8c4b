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
    init_workspace,
    land_files,
    open_workspace,
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
    with init_workspace(root) as workspace:
        land_files(workspace, FOLDER, SEED, message="Seed harness", date=DATE)
    return root


@pytest.fixture
def workspace(seeded, tmp_path):
    shutil.copytree(seeded, tmp_path / "ws")
    with open_workspace(tmp_path / "ws") as workspace:
        yield workspace


def git(workspace, *arguments):
    return subprocess.run(["git", *arguments], cwd=workspace.root, check=True, capture_output=True, text=True).stdout


def propose(workspace, files, *, parent=None, number=1):
    """Commit files as a candidate on the user's head or on another candidate, keep it, and describe it."""
    parent = parent or workspace.head_commit()
    name = f"r1-c{number:02}"
    trailers = Trailers(run="r1", candidate=name)
    commit = workspace.commit_files(parent, FOLDER, files, message="Try it", date=DATE, trailers=trailers)
    workspace.update_ref(candidate_ref(name), commit, None)
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


def accept(workspace, candidate):
    return accept_candidate(workspace, candidate, message="Keep it", trailers=TRAILERS, date=DATE)


def work_tree(workspace):
    folder = workspace.root / FOLDER
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_a_commit_made_twice_has_one_id_and_touches_neither_index_nor_work_tree(workspace):
    """A killed and resumed run makes the same commits, and the user notices nothing."""
    (workspace.root / "draft.txt").write_text("the user's own")
    git(workspace, "add", "draft.txt")
    before = git(workspace, "status", "--porcelain"), git(workspace, "ls-files", "--stage")
    first, second = propose(workspace, BETTER).commit, propose(workspace, BETTER).commit
    assert first == second
    assert workspace.read_files(first, FOLDER) == BETTER
    assert (git(workspace, "status", "--porcelain"), git(workspace, "ls-files", "--stage")) == before
    assert workspace.differing_paths("HEAD", first) == [
        f"{FOLDER}/{name}" for name in ("action.py", "skills/a.md", "skills/b.md", "skills/c.md")
    ]


def test_accept_is_one_commit_on_the_users_branch_with_the_work_tree_brought_along(workspace):
    """Accepted files arrive in branch, index and work tree, with trailers, and other staged work is left staged."""
    candidate = propose(workspace, BETTER)
    before = workspace.head_commit()
    (workspace.root / "draft.txt").write_text("the user's own")
    git(workspace, "add", "draft.txt")
    commit = accept(workspace, candidate)
    assert git(workspace, "log", "--format=%H %P", "-1", "main").split() == [commit, before]
    assert workspace.trailers(commit) == TRAILERS
    assert work_tree(workspace) == BETTER
    assert git(workspace, "status", "--porcelain") == "A  draft.txt\n"


def test_accepting_again_changes_nothing(workspace):
    """A second accept returns the first one's commit, also after later commits of the user."""
    candidate = propose(workspace, BETTER)
    commit = accept(workspace, candidate)
    git(workspace, "-c", "user.name=u", "-c", "user.email=u@u", "commit", "-q", "--allow-empty", "-m", "later")
    assert accept(workspace, candidate) == commit
    assert git(workspace, "rev-list", "--count", "HEAD") == "4\n"


def test_accept_names_the_candidate_that_must_come_first(workspace):
    """A candidate built on another one cannot be accepted alone; both in order can."""
    first = propose(workspace, BETTER)
    second = propose(workspace, {**BETTER, "skills/d.md": b"d\n"}, parent=first.commit, number=2)
    with pytest.raises(RepositoryError, match="accept r1-c01 first"):
        accept(workspace, second)
    assert work_tree(workspace) == SEED
    accept(workspace, first)
    accept(workspace, second)
    assert set(work_tree(workspace)) == {*BETTER, "skills/d.md"}


def test_accept_names_what_the_user_changed_since(workspace):
    """A harness that moved on since the test is not overwritten; the message names the files."""
    candidate = propose(workspace, BETTER)
    land_files(workspace, FOLDER, {**SEED, "action.py": b"# mine\n"}, message="Mine", date=DATE)
    with pytest.raises(RepositoryError, match=r"household/action\.py changed since"):
        accept(workspace, candidate)


@pytest.mark.parametrize("edit", ["action.py", "skills/new.md"])
def test_accept_refuses_a_harness_folder_with_uncommitted_changes(workspace, edit):
    """Edited and untracked files in the folder are named and left alone."""
    candidate = propose(workspace, BETTER)
    (workspace.root / FOLDER / edit).write_text("# in progress\n")
    head = workspace.head_commit()
    with pytest.raises(RepositoryError, match=f"uncommitted changes .*{edit}"):
        accept(workspace, candidate)
    assert workspace.head_commit() == head
    assert (workspace.root / FOLDER / edit).read_text() == "# in progress\n"


def test_accept_refuses_a_detached_head_and_an_unfinished_merge(workspace):
    """A commit is never put where the user would lose sight of it."""
    candidate = propose(workspace, BETTER)
    (workspace.root / ".git" / "MERGE_HEAD").write_text(f"{workspace.head_commit()}\n")
    with pytest.raises(RepositoryError, match="a merge is unfinished"):
        accept(workspace, candidate)
    (workspace.root / ".git" / "MERGE_HEAD").unlink()
    git(workspace, "checkout", "-q", "--detach")
    with pytest.raises(RepositoryError, match="detached"):
        accept(workspace, candidate)


def test_a_candidate_without_a_change_is_refused(workspace):
    """An empty patch does not become a commit."""
    with pytest.raises(RepositoryError, match="changes nothing"):
        accept(workspace, propose(workspace, SEED))


SHIM = """#!/bin/sh
case " $* " in *" $DIE_AT "*) touch "$DIED"; {act} kill -9 $PPID; exit 1;; esac
exec {git} "$@"
"""
DEATHS = ["hash-object", "update-index", "write-tree", "commit-tree", "update-ref", "restore"]


def accept_and_die(workspace, candidate, monkeypatch, tmp_path, *, at, act=""):
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
                accept(workspace, candidate)
            finally:
                os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -9
    assert (tmp_path / "died").exists()


@pytest.mark.parametrize("at", DEATHS)
def test_accept_killed_before_any_of_its_writes_completes_when_run_again(workspace, monkeypatch, tmp_path, at):
    """After kill -9 the same accept gives the commit that an undisturbed one gives, once, and a clean tree."""
    candidate = propose(workspace, BETTER)
    accept_and_die(workspace, candidate, monkeypatch, tmp_path, at=at)
    commit = accept(workspace, candidate)
    assert work_tree(workspace) == BETTER
    assert git(workspace, "status", "--porcelain") == ""
    assert git(workspace, "rev-list", "--count", "HEAD") == "3\n"
    expected = workspace.commit_files(f"{commit}^", FOLDER, BETTER, message="Keep it", date=DATE, trailers=TRAILERS)
    assert commit == expected
    git(workspace, "fsck", "--strict")


def test_a_half_written_work_tree_is_completed(workspace, monkeypatch, tmp_path):
    """A file that git had begun to write when it was killed is written whole."""
    candidate = propose(workspace, BETTER)
    folder = workspace.root / FOLDER
    act = f'printf "tw" > {folder}/skills/a.md; rm {folder}/skills/b.md;'
    accept_and_die(workspace, candidate, monkeypatch, tmp_path, at="restore", act=act)
    accept(workspace, candidate)
    assert work_tree(workspace) == BETTER
    assert git(workspace, "status", "--porcelain") == ""


def test_an_edit_made_after_a_killed_accept_is_not_overwritten(workspace, monkeypatch, tmp_path):
    """Completing a cut-off accept stops at a file that the user changed since, and says how to go on."""
    candidate = propose(workspace, BETTER)
    accept_and_die(workspace, candidate, monkeypatch, tmp_path, at="restore")
    (workspace.root / FOLDER / "action.py").write_text("# the user's\n")
    with pytest.raises(RepositoryError, match=r"action\.py changed since"):
        accept(workspace, candidate)
    assert (workspace.root / FOLDER / "action.py").read_text() == "# the user's\n"
    git(workspace, "checkout", "HEAD", "--", f"{FOLDER}/action.py")
    accept(workspace, candidate)
    assert work_tree(workspace) == BETTER


def test_the_hooks_of_the_repository_do_not_run(workspace):
    """Neither hooks nor an fsmonitor program of the repository run because of us."""
    trap = workspace.root / ".git" / "trap"
    script = f"#!/bin/sh\ntouch {trap}\n"
    for name in ("reference-transaction", "post-checkout", "post-index-change", "pre-commit", "monitor"):
        hook = workspace.root / ".git" / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(script)
        hook.chmod(0o755)
    git(workspace, "config", "core.fsmonitor", str(workspace.root / ".git" / "hooks" / "monitor"))
    accept(workspace, propose(workspace, BETTER))
    assert workspace.is_clean()
    assert not trap.exists()


def test_line_end_conversion_of_the_user_does_not_change_what_is_committed(workspace):
    """With autocrlf the work tree gets the user's line ends while the committed bytes stay as they were."""
    git(workspace, "config", "core.autocrlf", "true")
    commit = accept(workspace, propose(workspace, BETTER))
    assert workspace.read_files(commit, FOLDER) == BETTER
    assert (workspace.root / FOLDER / "skills/a.md").read_bytes() == b"two\r\n"
    assert workspace.is_clean(FOLDER)


def test_commits_are_signed_by_the_user_where_git_knows_one(workspace, monkeypatch):
    """The user's name stands on commits; without one it is evolve's, and no configuration is written."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    anonymous = workspace.commit_files("HEAD", FOLDER, BETTER, message="m", date=DATE)
    assert git(workspace, "log", "-1", "--format=%an <%ae> %aI", anonymous) == (
        "evolve <evolve@localhost> 2026-01-02T03:04:05+00:00\n"
    )
    assert "[user]" not in (workspace.root / ".git" / "config").read_text()
    git(workspace, "config", "user.name", "Ada")
    git(workspace, "config", "user.email", "ada@example.org")
    known = workspace.commit_files("HEAD", FOLDER, BETTER, message="m", date=DATE)
    assert git(workspace, "log", "-1", "--format=%an <%ae>", known) == "Ada <ada@example.org>\n"


def test_a_ref_moves_only_from_where_it_was_said_to_be(workspace):
    """The run's branch is compared and swapped; a move that was done already is done."""
    candidate, branch = propose(workspace, BETTER), run_branch("r1")
    workspace.update_ref(branch, candidate.parent_commit, None)
    with pytest.raises(RepositoryError, match="evolve/r1 is at"):
        workspace.update_ref(branch, candidate.commit, candidate.commit)
    workspace.update_ref(branch, candidate.commit, candidate.parent_commit)
    workspace.update_ref(branch, candidate.commit, candidate.parent_commit)
    assert workspace.resolve(branch) == candidate.commit


@pytest.mark.parametrize("path", ["../x", "/etc/x", "a/../b", ".git/config", "a//b", "", "skills/.GIT/x"])
def test_a_path_that_leaves_the_folder_is_never_committed(workspace, path):
    """Paths are relative, plain and out of git's own folder."""
    with pytest.raises(RepositoryError, match="no path inside"):
        workspace.commit_files("HEAD", FOLDER, {path: b""}, message="m", date=DATE)


@pytest.mark.parametrize("name", ["../x", "a/b", "", "-x", "a..b", "x.lock", "a b"])
def test_a_name_that_is_no_name_is_refused(name):
    """Environments, runs and candidates become folders and refs, so their names are plain."""
    for use in (harness_folder, run_branch, candidate_ref):
        with pytest.raises(RepositoryError, match="cannot name"):
            use(name)


def test_a_link_in_a_harness_folder_is_an_error(workspace):
    """A harness with a symbolic link does not read."""
    (workspace.root / FOLDER / "link").symlink_to("/etc/passwd")
    git(workspace, "add", "-A")
    git(workspace, "-c", "user.name=u", "-c", "user.email=u@u", "commit", "-qm", "link")
    with pytest.raises(RepositoryError, match="link or a submodule"):
        workspace.read_files("HEAD", FOLDER)


def test_odd_content_and_names_survive_the_way_through_git(workspace):
    """Bytes are kept whatever they are: line ends, no last line end, empty, binary, names with spaces and accents."""
    files = {"a b.md": b"x\r\ny", "é.md": b"", "*": b"\xff\x00\n\n", "z": b"100644 blob 3\tx\n"}
    commit = workspace.commit_files("HEAD", FOLDER, files, message="m", date=DATE)
    assert workspace.read_files(commit, FOLDER) == files


def test_export_holds_the_files_and_nothing_of_git(workspace, tmp_path):
    """A proposer's copy has no history, and an existing folder is not overwritten."""
    target = tmp_path / "out" / "copy"
    workspace.export(propose(workspace, BETTER).commit, FOLDER, target)
    found = {str(file.relative_to(target)): file.read_bytes() for file in target.rglob("*") if file.is_file()}
    assert found == BETTER
    assert list(target.parent.iterdir()) == [target]
    with pytest.raises(RepositoryError, match="exists already"):
        workspace.export("HEAD", FOLDER, target)


def test_diff_reads_as_a_patch_whatever_the_users_settings(workspace):
    """The diff of a candidate is the same unified text for everybody."""
    candidate = propose(workspace, BETTER)
    plain = workspace.diff(candidate.parent_commit, candidate.commit, FOLDER)
    for setting in ("diff.noprefix=true", "diff.external=false", "color.ui=always", "diff.renames=copies"):
        git(workspace, "config", *setting.split("="))
    assert workspace.diff(candidate.parent_commit, candidate.commit, FOLDER) == plain
    assert "--- a/harness_artifacts/household/skills/a.md" in plain
    assert "-one\n+two" in plain


def test_a_worktree_is_made_whatever_a_killed_attempt_left(workspace, tmp_path):
    """A locked entry without a folder, and a folder without an entry, are both replaced."""
    commit, path = propose(workspace, BETTER).commit, tmp_path / "trees" / "c1"
    add_worktree(workspace, commit, path)
    git(workspace, "worktree", "lock", "--reason", "initializing", str(path))
    shutil.rmtree(path)
    add_worktree(workspace, commit, path)
    shutil.rmtree(workspace.root / ".git" / "worktrees")
    add_worktree(workspace, commit, path)
    assert (path / FOLDER / "skills/c.md").read_bytes() == b"c\n"
    remove_worktree(workspace, path)
    remove_worktree(workspace, path)
    assert not path.exists()
    assert git(workspace, "worktree", "list").count("\n") == 1


def test_a_frozen_harness_is_a_tag_with_its_manifest(workspace):
    """The manifest comes back as it was written; the same freeze is done already, another one is refused."""
    manifest = {"harness": "ab" * 32, "nested": {"text": "a\n\nb é", "n": 1.5}}
    freeze(workspace, "HEAD", "evolve/household/v1", manifest, date=DATE)
    freeze(workspace, "HEAD", "evolve/household/v1", manifest, date=DATE)
    assert read_tag(workspace, "evolve/household/v1") == (workspace.head_commit(), manifest)
    assert tags(workspace, "household") == ["evolve/household/v1"]
    assert git(workspace, "cat-file", "-t", "evolve/household/v1") == "tag\n"
    with pytest.raises(RepositoryError, match="seals something else"):
        freeze(workspace, "HEAD", "evolve/household/v1", {**manifest, "harness": "x"}, date=DATE)
    git(workspace, "tag", "evolve/household/light")
    with pytest.raises(RepositoryError, match="carries no manifest"):
        read_tag(workspace, "evolve/household/light")


def test_trailers_survive_the_way_through_a_message():
    """What is written is read back; other tools' trailers and the text above are passed over."""
    assert Trailers.parse(TRAILERS.under("Subject\n\nEvolve-Run: not this\n\nBody")) == TRAILERS
    assert Trailers.parse("Subject\n\nSigned-off-by: A\nEvolve-Run: r2\nEvolve-Unknown: x\n") == Trailers(run="r2")
    assert Trailers.parse("Subject only") == Trailers()
    assert TRAILERS.under("Subject").splitlines()[2:4] == ["Evolve-Run: r1", "Evolve-Candidate: r1-c01"]
    assert "\nEvolve-Verdict: two lines\n" in Trailers(run="r", verdict="two\nlines").under("S")


def test_a_folder_that_cannot_be_a_workspace_says_why(tmp_path, monkeypatch):
    """No repository, a folder inside one, a bare one, one without commits, and git's own variables."""
    with pytest.raises(RepositoryError, match="not the top folder of a git repository"):
        open_workspace(tmp_path)
    subprocess.run(["git", "init", "-q", "--bare", tmp_path / "bare"], check=True)
    with pytest.raises(RepositoryError, match="bare repository"):
        open_workspace(tmp_path / "bare")
    subprocess.run(["git", "init", "-q", tmp_path / "young"], check=True)
    with pytest.raises(RepositoryError, match="no commit yet"):
        open_workspace(tmp_path / "young")
    (tmp_path / "young" / "inside").mkdir()
    with pytest.raises(RepositoryError, match="not the top folder"):
        open_workspace(tmp_path / "young" / "inside")
    monkeypatch.setenv("GIT_INDEX_FILE", "elsewhere")
    with pytest.raises(RepositoryError, match="GIT_INDEX_FILE is set"):
        init_workspace(tmp_path / "young")


def test_without_the_git_program_the_message_says_so(tmp_path):
    """A machine without git gets a sentence, not an import error."""
    code = "from pathlib import Path; from evolve.repository import open_workspace; open_workspace(Path('.'))"
    environment = {**os.environ, "PATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert "RepositoryError: the git program was not found" in done.stderr


def test_no_helper_process_outlives_a_closed_workspace(tmp_path):
    """Reading many files leaves no `git cat-file` behind."""
    with init_workspace(tmp_path / "ws") as workspace:
        land_files(workspace, FOLDER, SEED, message="m", date=DATE)
        workspace.read_files("HEAD", FOLDER)
    children = subprocess.run(["ps", "--ppid", str(os.getpid()), "-o", "args="], capture_output=True, text=True).stdout
    assert "cat-file" not in children
