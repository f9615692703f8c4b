"""Each thing a user can get wrong: one clear line, the right exit code, nothing lost."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from accepted import add_accepted

from evolve.lock import WorkspaceLock
from evolve.proposers.sandbox import choose_sandbox
from evolve.repository import open_repository
from evolve.workspace import Workspace

LIMITED = """
import resource, sys
size = int(sys.argv.pop(1))
resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
from evolve.cli import main
main()
"""


def assert_refused(ended, code: int, *words: str) -> None:
    assert (ended.code, ended.out) == (code, "")
    assert ended.err.splitlines()[-1].startswith("evolve: ")
    assert "Traceback" not in ended.err
    for word in words:
        assert word in ended.err


def head_of(root: Path) -> str:
    with open_repository(root) as repository:
        return repository.head_commit()


def test_unknown_environment_is_a_usage_error_that_names_those_there_are(evolve, workspace):
    """An unknown environment ends with 2 and the list of installed ones; no run is begun."""
    ended = evolve("run", "-C", workspace, "--config", workspace / "my.toml", "--env", "nowhere")
    assert_refused(ended, 2, "'nowhere'", "household", "service_desk")
    assert evolve("runs", "list", "-C", workspace, "--json").document["runs"] == []


def test_missing_key_is_found_before_anything_begins(evolve, workspace):
    """Without the key of the configured endpoint a run ends with 2, names the variable, and is not on record."""
    ended = evolve("run", "-C", workspace, "--set", "model.id=m")
    assert_refused(ended, 2, "OPENAI_API_KEY", ".env")
    assert evolve("runs", "list", "-C", workspace, "--json").document["runs"] == []


def test_what_a_run_lacks_is_told_before_it_is_on_record(evolve, workspace):
    """A proposer without model or program, a variable that is no text: refused with 2, and no run is left behind."""
    words = ("-C", workspace, "--config", workspace / "my.toml")
    assert_refused(evolve("run", *words, "--set", "proposer.kind=openai"), 2, "proposer.model")
    (workspace / "agents.toml").write_text(
        '[agents.ghost]\ntitle = "Ghost"\nprogram = "ghost-agent"\nargv = ["{prompt}"]\ninstall = "call a medium"\n'
    )
    settings = ("kind=command", "agent=ghost", f"agents_file={workspace / 'agents.toml'}")
    ghost = (*words, *(part for setting in settings for part in ("--set", f"proposer.{setting}")))
    told = "Ghost is not installed: no program 'ghost-agent'; call a medium"
    assert_refused(evolve("run", *ghost), 2, told)
    assert evolve("plan", *ghost, "--json").document["refusals"] == [told]
    assert evolve("runs", "list", "-C", workspace, "--json").document["runs"] == []
    command = [sys.executable, "-m", "evolve", "config", "show", "-C", str(workspace)]
    environ = {**os.environb, b"EVOLVE_MODEL__ID": b"\xff\xfe"}
    ended = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert (ended.returncode, "EVOLVE_MODEL__ID" in ended.stderr) == (2, True), ended.stderr


def test_a_file_of_agents_that_does_not_read_is_refused_everywhere(evolve, workspace):
    """A run ends with 2 and nothing on record; plan, dry run and doctor name key and path too."""
    words = ("-C", workspace, "--config", workspace / "my.toml", "--set", "proposer.kind=command")
    absent = (*words, "--set", "proposer.agent=codex", "--set", f"proposer.agents_file={workspace / 'absent.toml'}")
    told = f"proposer.agents_file names {workspace / 'absent.toml'}, and there is no such file"
    assert_refused(evolve("run", *absent), 2, told)
    for command in (("plan",), ("run", "--dry-run")):
        assert evolve(*command, *absent, "--json").document["refusals"] == [told]
    doctor = evolve("doctor", *absent, "--json")
    assert doctor.code == 2
    assert told in [finding["detail"] for finding in doctor.document["findings"] if finding["blocks"]]
    assert evolve("runs", "list", "-C", workspace, "--json").document["runs"] == []


def test_a_proxy_that_is_not_spoken_to_is_refused_before_anything_is_played(evolve, workspace, monkeypatch):
    """A coding agent in the sandbox gets out through the user's own proxy; only plain HTTP is spoken to it."""
    if choose_sandbox("auto").sandbox is None:
        pytest.skip("no sandbox holds here, and outside one agents use the proxy themselves")
    rows = workspace / "agents.toml"
    rows.write_text(
        '[agents.l]\ntitle = "L"\nprogram = "ls"\ninstall = ""\nargv = ["{prompt}"]\nhosts = ["model.test"]\n'
    )
    settings = ("proposer.kind=command", "proposer.agent=l", f"proposer.agents_file={rows}")
    words = ("-C", workspace, "--config", workspace / "my.toml", *(w for one in settings for w in ("--set", one)))
    monkeypatch.setenv("HTTPS_PROXY", "socks5://127.0.0.1:1080")
    told = "an address in the variable HTTPS_PROXY does not read: socks5:// is no proxy that the gateway speaks to"
    assert_refused(evolve("run", *words), 2, told)
    (refusal,) = evolve("plan", *words, "--json").document["refusals"]
    assert told in refusal
    (finding,) = [one for one in evolve("doctor", *words, "--json").document["findings"] if told in one["detail"]]
    assert (finding["name"], finding["mend"]) == ("agent l", "mend or unset it")
    assert evolve("runs", "list", "-C", workspace, "--json").document["runs"] == []


def test_a_folder_that_cannot_be_made_is_the_users_error(evolve, tmp_path):
    """Below a file there is no folder; init and demo say so."""
    (tmp_path / "file").write_text("x")
    assert_refused(evolve("init", tmp_path / "file" / "x"), 2, "cannot be made")
    assert_refused(evolve("demo", "--into", tmp_path / "file" / "x"), 2, "cannot be made")


def test_closed_standard_error_is_no_fault(played):
    """What goes to standard error is lost, as was asked for; the result stands on standard output."""
    command = [
        "bash",
        "-c",
        'exec "$@" 2>&-',
        "bash",
        sys.executable,
        "-m",
        "evolve",
        "runs",
        "list",
        "-C",
        str(played),
    ]
    ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    assert (ended.returncode, "household-001" in ended.stdout) == (0, True)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_where_standard_error_takes_no_more_the_exit_code_tells(played):
    """An error that cannot be said ends with its own code; a run whose progress nobody sees goes on to its end."""
    config = ["--config", str(played / "my.toml"), "--iterations", "1"]
    for words, code in ((["runs", "show", "nowhere"], 2), (["runs", "--nope"], 2), (["run", *config], 0)):
        command = [sys.executable, "-m", "evolve", *words, *(["-C", str(played)] if len(words) > 2 else [])]
        with Path("/dev/full").open("w") as full:
            ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=full, check=False)
        assert ended.returncode == code, words
    assert b"household-002" in ended.stdout


def test_a_run_goes_on_when_nobody_reads_its_progress(played):
    """`evolve run 2>&1 >result | head -1` ends the reader, not the run."""
    command = [sys.executable, "-m", "evolve", "run", "--config", str(played / "my.toml"), "-C", str(played)]
    started = subprocess.Popen([*command, "--iterations", "1"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    started.stderr.close()
    with started.stdout as result:
        assert b"household-002" in result.read()
    assert started.wait() == 0


def test_a_credential_in_the_configuration_is_refused(evolve, workspace, monkeypatch):
    """It would be written into ledger and report: the key is named, what it holds is not, and nothing is on record."""
    monkeypatch.setenv("MY_API_KEY", "correct-horse-battery")
    words = ("-C", workspace, "--config", workspace / "my.toml")
    for secret in ("sk-proj-abcdefghijklmnopqrstuvwxyz", "correct-horse-battery"):
        ended = evolve("run", *words, "--set", f"model.extra_body.api_key={secret}")
        assert_refused(ended, 2, "model.extra_body.api_key holds a credential", "model.api_key_env")
        assert secret not in ended.err
        plan = evolve("plan", *words, "--set", f"model.extra_body.api_key={secret}", "--json")
        assert "model.extra_body.api_key holds a credential" in plan.document["refusals"][0]
    assert evolve("runs", "list", "-C", workspace, "--json").document["runs"] == []


def test_a_budget_of_money_without_a_price_is_refused(evolve, workspace):
    """Where nobody knows what a token costs a limit in dollars limits nothing; one in tokens does."""
    (workspace / ".env").write_text("OPENAI_API_KEY=x\n")
    model = ("--set", "model.id=m", "--set", "model.base_url=http://127.0.0.1:9/v1")
    ended = evolve("run", "-C", workspace, *model, "--budget-usd", "1")
    assert_refused(ended, 2, "budget.usd is 1", "model.price", "budget.tokens")
    assert evolve("runs", "list", "-C", workspace, "--json").document["runs"] == []


def test_unreachable_endpoint_ends_with_4_and_the_run_can_be_resumed(evolve, workspace):
    """An endpoint that nobody listens at is infrastructure: exit code 4, nothing scored, the run on record."""
    sets = ("model.id=m", "model.api_key_env=none", "model.base_url=http://127.0.0.1:9/v1", "model.retries=0")
    options = [part for one in (*sets, "rollout.retries=0") for part in ("--set", one)]
    (workspace / ".env").write_text("none=x\n")
    ended = evolve("run", "-C", workspace, *options, "--set", "environments.household.train=4", "--json")
    assert ended.code == 4
    assert "cannot be reached" in ended.err
    assert ended.document["status"] == "failed"
    assert ended.document["totals"]["usage"]["prompt_tokens"] == 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("environment = [", ("evolve.toml", "TOML")),
        ("iterationen = 3", ("iterationen (from ", "evolve.toml", "no such key; the nearest is iterations")),
        ("iterations = 0", ("iterations", "evolve.toml")),
        ("iterations = 'many'", ("iterations", "evolve.toml")),
    ],
)
def test_malformed_configuration_names_file_and_key(evolve, workspace, text, words):
    """An evolve.toml that does not read, or holds an unknown or a wrong value, ends with 2 and says where."""
    (workspace / "evolve.toml").write_text(text)
    assert_refused(evolve("run", "-C", workspace), 2, *words)


@pytest.mark.parametrize("option", [("--set", "iterations"), ("--config", "missing.toml"), ("--set", "model.id.x=1")])
def test_wrong_setting_on_the_command_line_is_named(evolve, workspace, option):
    """A flag that sets nothing sensible ends with 2."""
    assert_refused(evolve("config", "show", "-C", workspace, *option), 2)


def test_unknown_option_and_missing_argument_are_usage_errors(evolve):
    """What the command line does not know ends with 2."""
    assert evolve("run", "--nonsense").code == 2
    assert evolve("accept").code == 2
    assert evolve("nonsense").code == 2
    assert evolve("run", "household-001").code == 2


def test_broken_harness_folder_is_refused_with_the_file(evolve, workspace):
    """A committed harness that does not read ends a run with 2; the file is named and stays as it is."""
    contract = workspace / "harness_artifacts/household/contract.toml"
    contract.write_text("[[system]]\nid = 3\n")
    git(workspace, "add", "-A")
    git(workspace, "-c", "user.name=u", "-c", "user.email=u@x", "commit", "-qm", "broken")
    assert_refused(evolve("run", "-C", workspace, "--config", workspace / "my.toml"), 2, "contract.toml")
    assert contract.read_text() == "[[system]]\nid = 3\n"


def test_harness_check_ends_with_2_and_lists_the_findings(evolve, workspace):
    """`harness check` lints a folder: 0 where it is fine, 2 with the findings where it is not."""
    folder = workspace / "harness_artifacts/household"
    assert evolve("harness", "check", folder).code == 0
    (folder / "action.py").write_text("import os\n")
    ended = evolve("harness", "check", folder, "--json")
    assert ended.code == 2
    assert ended.document["findings"][0].startswith("action.py:1:")
    assert evolve("harness", "check", workspace / "missing").code == 2


@pytest.mark.parametrize("above", ["", "harness_artifacts"])
def test_harness_check_of_a_folder_too_high_names_those_below(evolve, workspace, above):
    """A workspace, or the folder of all harnesses, is none itself; what to check instead is said."""
    ended = evolve("harness", "check", workspace / above, "--json")
    assert ended.code == 2
    (finding,) = ended.document["findings"]
    assert "has no harness.toml" in finding
    told = finding.partition("check one of ")[2].split(", ")
    assert {f"{workspace}/harness_artifacts/{name}" for name in ("household", "service_desk")} <= set(told)
    assert evolve("harness", "check", told[0]).code == 0


@pytest.mark.parametrize("command", [("run",), ("freeze", "household", "--name", "v1")])
def test_dirty_harness_is_refused_and_kept(evolve, workspace, command):
    """Uncommitted changes in the harness end a run and a freeze with 2, and stay."""
    file = workspace / "harness_artifacts/household/harness.toml"
    file.write_text(file.read_text() + "# mine\n")
    config = ("--config", workspace / "my.toml") if command == ("run",) else ()
    assert_refused(evolve(*command, "-C", workspace, *config), 2, "harness.toml", "not committed")
    assert file.read_text().endswith("# mine\n")


def test_workspace_without_repository_is_refused(evolve, workspace):
    """A workspace whose folder is no git repository ends with 2 and the way to one."""
    shutil.rmtree(workspace / ".git")
    assert_refused(
        evolve("run", "-C", workspace, "--config", workspace / "my.toml"), 2, "git repository", "evolve init"
    )


def test_outside_a_workspace_the_way_in_is_named(evolve, tmp_path):
    """A folder without evolve.toml, and one that does not exist, end with 2."""
    assert_refused(evolve("run", "-C", tmp_path), 2, "evolve init")
    assert_refused(evolve("runs", "list", "-C", tmp_path / "missing"), 2, "not a folder")


@pytest.mark.parametrize("command", [("run",), ("accept", "1"), ("freeze", "household", "--name", "v1")])
def test_two_writers_at_once_are_refused(evolve, workspace, command):
    """While one process holds the workspace, another that would write ends with 2 and names the first."""
    add_accepted(workspace)
    config = ("--config", workspace / "my.toml") if command == ("run",) else ()
    with WorkspaceLock(Workspace(workspace).lock_file):
        assert_refused(evolve(*command, "-C", workspace, *config), 2, f"process {os.getpid()}")


@pytest.mark.parametrize("command", [("accept",), ("reject",), ("candidates", "show"), ("candidates", "diff")])
def test_unknown_candidate_is_named_with_the_way_to_those_there_are(evolve, workspace, command):
    """A candidate that is not on record ends with 2; neither branch nor ledger changes."""
    add_accepted(workspace)
    before = head_of(workspace)
    assert_refused(evolve(*command, "household-009-01", "-C", workspace), 2, "household-009-01", "candidates list")
    assert head_of(workspace) == before


def test_full_disk_ends_with_4_and_a_resumed_run_has_everything(evolve, workspace, played):
    """A run whose files cannot grow ends with 4; resumed with room it ends with the totals of an undisturbed run."""
    undisturbed = evolve("runs", "show", "-C", played, "--json").document
    options = ["-C", str(workspace), "--config", str(workspace / "my.toml"), "--iterations", "1"]
    command = [sys.executable, "-c", LIMITED, "150000", "run", *options]
    full = subprocess.run(command, capture_output=True, text=True, check=False)
    assert full.returncode == 4, full.stderr
    assert "Traceback" not in full.stderr
    again = ("--resume",) if evolve("runs", "list", "-C", workspace, "--json").document["runs"] else ()
    resumed = evolve("run", *again, *options, "--json")
    assert resumed.code == 0
    for key in ("episodes", "requests", "requests_asked", "usage"):
        assert resumed.document["totals"][key] == undisturbed["totals"][key]
    assert [c["state"] for c in resumed.document["candidates"]] == [c["state"] for c in undisturbed["candidates"]]


def test_held_out_trace_is_not_shown(evolve, workspace):
    """The trace of a held-out episode stays closed, so that no patch is written from it."""
    settings = ("-C", workspace, "--config", workspace / "my.toml")
    assert evolve("freeze", "household", "--name", "v1", *settings).code == 0
    assert evolve("evaluate", "v1", *settings).code == 0
    line = next(Workspace(workspace).traces.glob("household/heldout/*.jsonl")).read_text().splitlines()[0]
    name = line.partition('"episode_id":"')[2].partition('"')[0]
    assert_refused(evolve("traces", "show", name, "-C", workspace), 2, "held-out")


def git(root: Path, *arguments: str) -> str:
    return subprocess.run(["git", "-C", str(root), *arguments], check=True, capture_output=True, text=True).stdout
