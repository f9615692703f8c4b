"""From an accepted candidate to a commit, a frozen version and a held-out evaluation."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from accepted import add_accepted

from evolve.cli.place import Place
from evolve.cli.sealing import frozen_text
from evolve.config import Config
from evolve.records import FrozenHarness
from evolve.repository import open_repository
from evolve.workspace import Workspace


def trailer_of(root: Path) -> str | None:
    with open_repository(root) as repository:
        return repository.trailers(repository.head_commit()).candidate


def test_review_off_a_terminal_lists_and_asks_nothing(evolve, workspace):
    """Off a terminal `review` shows patch, hypothesis, pattern and gate of each candidate, and decides nothing."""
    (name,) = add_accepted(workspace)
    ended = evolve("review", "-C", workspace)
    assert ended.code == 0
    for word in (name, "The note 1 helps", "Text only", "The gain shows again.", "+id = ", "evolve accept ID"):
        assert word in ended.out
    assert "\x1b" not in ended.out
    assert f"`evolve candidates show {name}` has every number" in ended.out
    document = evolve("review", "-C", workspace, "--json").document
    assert [entry["review"] for entry in document["waiting"]] == ["waiting"]
    assert "+id = " in document["waiting"][0]["diff"]


def test_accept_is_a_commit_on_the_users_branch_with_trailers(evolve, workspace):
    """`accept` commits the harness with its evidence; a second time changes nothing."""
    (name,) = add_accepted(workspace)
    ended = evolve("accept", "1", "-C", workspace, "--json")
    assert ended.code == 0
    assert trailer_of(workspace) == name
    assert "contract.note-1" in (workspace / "harness_artifacts/household/contract.toml").read_text()
    assert evolve("accept", name, "-C", workspace, "--json").document == ended.document
    assert evolve("review", "-C", workspace, "--json").document["waiting"] == []


def test_several_are_accepted_in_the_order_they_build_on_one_another(evolve, workspace):
    """The order in which ids are written does not matter."""
    first, second = add_accepted(workspace, 2)
    done = evolve("accept", second, first, "-C", workspace, "--json").document["accepted"]
    assert [one["candidate_id"] for one in done] == [first, second]
    assert trailer_of(workspace) == second


def test_accepting_the_second_alone_names_the_first(evolve, workspace):
    """A candidate that builds on another is refused with the name of that other."""
    first, second = add_accepted(workspace, 2)
    ended = evolve("accept", second, "-C", workspace)
    assert ended.code == 2
    assert f"accept {first} first" in ended.err


def test_dry_accept_shows_the_commit_and_makes_none(evolve, workspace):
    """`accept --dry-run` prints message and patch; the branch stays."""
    add_accepted(workspace)
    ended = evolve("accept", "1", "-C", workspace, "--dry-run")
    assert "The note 1 helps the model." in ended.out
    assert "+id = " in ended.out
    assert trailer_of(workspace) is None


def test_dry_accept_refuses_what_accept_refuses(evolve, workspace, played):
    """A gate's rejection, a candidate without its forerunner, an edited harness: the same words, the same code."""
    assert "the gate said reject" in refusal_of(evolve, "1", "-C", played)
    first, second = add_accepted(workspace, 2)
    assert f"accept {first} first" in refusal_of(evolve, second, "-C", workspace)
    both = evolve("accept", second, first, "-C", workspace, "--dry-run", "--json").document["would_accept"]
    assert [one["candidate_id"] for one in both] == [first, second]
    (workspace / "harness_artifacts/household/contract.toml").write_text("# mine\n")
    assert "uncommitted changes" in refusal_of(evolve, first, "-C", workspace)


def refusal_of(evolve, *arguments: str | Path) -> str:
    """Return how `accept` refuses, with --dry-run and without."""
    dry, real = evolve("accept", *arguments, "--dry-run"), evolve("accept", *arguments)
    assert (dry.code, dry.out, dry.err) == (2, "", real.err)
    return real.err


def test_reject_keeps_the_patch_under_a_ref_and_a_change_of_mind_is_told(evolve, workspace):
    """A refused candidate no longer waits; its ref is there; taken after all, that is said; a taken one stays."""
    first, second = add_accepted(workspace, 2)
    assert evolve("reject", second, "-C", workspace).code == 0
    assert [
        e["candidate"]["candidate_id"] for e in evolve("review", "-C", workspace, "--json").document["waiting"]
    ] == [first]
    with open_repository(workspace) as repository:
        assert repository.resolve(f"refs/evolve/candidates/{second}")
    evolve("accept", first, "-C", workspace)
    assert evolve("reject", first, "-C", workspace).code == 2
    assert "and was rejected before" in evolve("accept", second, "-C", workspace).out


def test_gate_s_rejection_cannot_be_accepted(evolve, played):
    """What the gate rejected is refused with its verdict."""
    ended = evolve("accept", "1", "-C", played)
    assert ended.code == 2
    assert "the gate said reject" in ended.err


def test_person_on_a_terminal_accepts_one_and_skips_the_next(workspace):
    """On a terminal each candidate is shown and the answer is done."""
    first, _ = add_accepted(workspace, 2)
    mine, theirs = pty.openpty()
    command = [sys.executable, "-m", "evolve", "review", "-C", str(workspace)]
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env={**os.environ, "NO_COLOR": "1"})
    os.close(theirs)
    os.write(mine, b"what\na\ns\n")
    shown = b""
    try:
        while part := os.read(mine, 4096):
            shown += part
    except OSError:
        pass
    os.close(mine)
    assert process.wait() == 0
    assert trailer_of(workspace) == first
    assert b"[2 of 2]" in shown
    assert b"\x1b[3" not in shown


def test_frozen_version_is_evaluated_and_each_look_is_told(evolve, workspace):
    """`freeze` tags, `evaluate` compares base and frozen on held-out tasks, and a second look says of the first."""
    add_accepted(workspace)
    evolve("accept", "1", "-C", workspace)
    config = ("-C", workspace, "--config", workspace / "my.toml")
    frozen = evolve("freeze", "household", "--name", "v1", *config, "--json").document
    assert frozen["manifest"]["origin"]["candidate"] == "household-001-01"
    assert frozen["manifest"]["heldout_commitment"]
    assert evolve("freeze", "household", "--name", "v1", *config, "--json").document == frozen
    assert evolve("evaluate", "v1", *config, "--dry-run", "--json").document["looks"] == []
    first = evolve("evaluate", "v1", *config, "--json").document
    assert (first["base"]["n"], first["frozen"]["n"], first["look"]["number"]) == (3, 3, 1)
    second = evolve("evaluate", "v1", *config)
    assert second.code == 0
    assert "1 look at these held-out tasks so far" in second.err
    assert "look 2 with this harness; 1 look made before" in second.out
    assert "base" in second.out
    other, words = (*config, "--set", "environments.household.heldout=2"), "environments.household.heldout=2. Restore"
    for command in (("freeze", "household", "--name", "v2"), ("evaluate", "v1"), ("run", "--iterations", "1")):
        refused = evolve(*command, *other)
        assert (refused.code, words in refused.err) == (2, True)
        previewed = evolve(*command, *other, "--dry-run", "--json")
        assert words in (previewed.err if previewed.code else "".join(previewed.document["refusals"]))


@pytest.mark.parametrize("flag", [(), ("--dry-run",)])
def test_a_name_that_nothing_is_frozen_under_is_told_before_the_key(evolve, workspace, flag):
    """Without a key, too, the names there are come first; where there are none, the command that seals one."""
    evaluate = ("evaluate", "nope", "-C", workspace, "--set", "model.id=m", *flag)
    first = evolve(*evaluate)
    assert (first.code, first.out) == (2, "")
    assert "nothing of household is frozen under the name 'nope', nor under another; `evolve freeze" in first.err
    for name in ("v1", "v2"):
        assert evolve("freeze", "household", "--name", name, "-C", workspace).code == 0
    assert "under the name 'nope'; frozen are v1, v2" in evolve(*evaluate).err
    assert "'nowhere'; installed are" in evolve(*evaluate, "--env", "nowhere").err


def refusals_of_freeze(evolve, workspace, name):
    """Return the beginning of how `freeze` refuses, with --dry-run and without."""
    ended = [evolve("freeze", "household", "--name", name, "-C", workspace, *flag) for flag in ((), ("--dry-run",))]
    assert [one.code for one in ended] == [2, 2]
    return [one.err.removeprefix("evolve: ").partition(";")[0].partition(": letters")[0].strip() for one in ended]


def test_a_version_without_held_out_data_is_told_to_be_of_no_use(tmp_path):
    """What comes next is not an evaluation that would be refused."""
    manifest = {"heldout_commitment": None}
    frozen = FrozenHarness(environment="e", name="v1", tag="t", commit="c" * 40, harness="h" * 64, manifest=manifest)
    place = Place(Workspace(tmp_path), Config(), {}, {}, named=("-C", "a b"), settings=("--set", "x=1"))
    assert "can never be evaluated" in frozen_text(place, frozen)
    sealed = frozen.model_copy(update={"manifest": {"heldout_commitment": "d" * 64}})
    assert "`evolve evaluate v1 --env e -C 'a b' --set x=1`" in frozen_text(place, sealed)


def test_a_next_command_leaves_the_ledgers_url_to_be_filled_in(evolve, workspace):
    """A password may stand in it; where the command line brought it, the next one needs it."""
    url = f"sqlite:///{workspace}/mine.sqlite?timeout=7"
    ended = evolve("freeze", "household", "--name", "v1", "-C", workspace, "--set", f"ledger.url={url}")
    assert (ended.code, "timeout=7" in ended.out) == (0, False), ended.err
    assert f"`EVOLVE_LEDGER__URL=… evolve evaluate v1 --env household -C {workspace}`" in ended.out


def test_unknown_version_and_wrong_name_are_refused(evolve, workspace):
    """What was not frozen cannot be evaluated, a bad name cannot be frozen, an unknown environment neither."""
    assert evolve("evaluate", "v9", "-C", workspace, "--config", workspace / "my.toml").code == 2
    assert evolve("freeze", "household", "--name", "no good", "-C", workspace).code == 2
    assert evolve("freeze", "nowhere", "--name", "v1", "-C", workspace).code == 2
    dry = evolve("freeze", "household", "--name", "v1", "-C", workspace, "--dry-run", "--json").document
    assert dry["would_freeze"]["tag"] == "evolve/household/v1"
    assert refusals_of_freeze(evolve, workspace, "a..b") == ["'a..b' is no name for a version"] * 2
    (workspace / "harness_artifacts/household/harness.toml").write_text("no harness")
    assert (
        refusals_of_freeze(evolve, workspace, "v1") == ["harness_artifacts/household/harness.toml is not committed"] * 2
    )
    with open_repository(workspace) as repository:
        repository.git.run("add", "-A")
        repository.git.run("-c", "user.name=me", "-c", "user.email=me@here", "commit", "--quiet", "-m", "broken")
    assert all("not valid TOML" in told for told in refusals_of_freeze(evolve, workspace, "v1"))
    with open_repository(workspace) as repository:
        assert repository.resolve("refs/tags/evolve/household/v1") is None


@pytest.mark.parametrize("flag", [(), ("--accept",)])
def test_run_commits_nothing_onto_the_users_branch_unless_asked(evolve, workspace, flag):
    """Without an accepted candidate the branch stays where it is, with --accept too."""
    with open_repository(workspace) as repository:
        before = repository.head_commit()
    ended = evolve("run", "-C", workspace, "--config", workspace / "my.toml", "--iterations", "1", *flag)
    assert ended.code == 0
    with open_repository(workspace) as repository:
        assert repository.head_commit() == before


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_result_that_could_not_be_shown_is_shown_again_as_the_same_look(evolve, workspace):
    """The look counts as told once its result was written out; until then evaluating again costs nothing."""
    add_accepted(workspace)
    evolve("accept", "1", "-C", workspace)
    config = ("-C", workspace, "--config", workspace / "my.toml")
    evolve("freeze", "household", "--name", "v1", *config)
    command = [sys.executable, "-m", "evolve", "evaluate", "v1", *map(str, config)]
    with Path("/dev/full").open("w") as nowhere:
        ended = subprocess.run(command, stdout=nowhere, stderr=subprocess.PIPE, text=True, check=False)
    assert (ended.returncode, "Traceback" in ended.stderr) == (4, False), ended.stderr
    closed = subprocess.run(
        ["bash", "-c", 'exec "$@" >&-', "bash", *command], stderr=subprocess.PIPE, text=True, check=False
    )
    assert (closed.returncode, "standard output is closed" in closed.stderr) == (4, True), closed.stderr
    shown = evolve("evaluate", "v1", *config, "--json").document
    assert (shown["look"]["number"], shown["earlier_looks"]) == (1, [])
    assert evolve("evaluate", "v1", *config, "--json").document["look"]["number"] == 2
