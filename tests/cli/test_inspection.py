"""What is on record of a run, as people and programs read it."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from accepted import add_accepted


def test_lists_of_a_new_workspace_say_that_there_is_nothing_yet(evolve, workspace):
    """Before the first run each list is empty, with exit code 0, and no ledger is made by looking."""
    for noun in ("runs", "candidates", "traces", "patterns"):
        ended = evolve(noun, "list", "-C", workspace)
        assert (ended.code, ended.err) == (0, "")
        assert ended.out.strip().startswith("no ")
        assert evolve(noun, "list", "-C", workspace, "--json").document[noun] == []
    assert not (workspace / ".evolve").exists()


@pytest.mark.parametrize(
    ("left", "code", "words"),
    [("ledger.sqlite", 4, "is gone, and it had taken"), ("*", 2, "the ledger was deleted, replaced or altered")],
    ids=["the ledger", "the whole folder"],
)
def test_a_removed_ledger_is_not_told_as_no_runs_yet(evolve, workspace, left, code, words):
    """Where runs were, a list of none would be a lie: looking is refused as running is, and the doctor says it too."""
    add_accepted(workspace)
    for path in filter(Path.is_file, (workspace / ".evolve").glob(left)):
        path.unlink()
    for noun in ("runs", "candidates"):
        ended = evolve(noun, "list", "-C", workspace)
        assert (ended.code, ended.out) == (code, "")
        assert words in ended.err
    assert words in evolve("doctor", "-C", workspace, "--offline").out


WRITING = (("run",), ("accept", "1"), ("reject", "1"), ("freeze", "household", "--name", "v1"))


@pytest.mark.parametrize("command", WRITING)
def test_a_refusal_leaves_no_empty_ledger_in_place_of_the_one_that_was(evolve, workspace, command, monkeypatch):
    """Who works without the ledger that git shows is refused, and so is who looks afterwards: the loss stays seen."""
    add_accepted(workspace)
    config = () if command[0] in ("accept", "reject") else ("--config", workspace / "my.toml")
    monkeypatch.setenv("EVOLVE_LEDGER__URL", f"sqlite:///{workspace / 'misspelt.db'}")
    assert evolve(*command, *config, "-C", workspace).code == 2
    assert not (workspace / "misspelt.db").exists()
    monkeypatch.delenv("EVOLVE_LEDGER__URL")
    for path in (workspace / ".evolve").glob("ledger.sqlite*"):
        path.unlink()
    for words in ((*command, *config), ("runs", "list")):
        ended = evolve(*words, "-C", workspace)
        assert (ended.code, ended.out) == (2, "")
        assert "the ledger was deleted, replaced or altered" in ended.err
    assert not list((workspace / ".evolve").glob("ledger.sqlite*"))


def test_show_without_runs_is_a_usage_error(evolve, workspace):
    """Showing what is not there ends with 2 and says how to begin."""
    for command in (("runs", "show"), ("report",), ("candidates", "show", "1")):
        ended = evolve(*command, "-C", workspace)
        assert (ended.code, ended.out) == (2, "")
        assert "evolve run" in ended.err


def test_run_prints_one_document_and_keeps_progress_on_standard_error(evolve, workspace):
    """`run --json` writes one document to standard output; progress, gate stages and verdicts go elsewhere."""
    options = ("--config", workspace / "my.toml", "--iterations", "1", "--json")
    ended = evolve("run", "-C", workspace, *options)
    assert ended.code == 0
    assert ended.document["status"] == "done"
    assert ended.document["totals"]["episodes"] == 8
    for word in ("baseline 4/4 episodes", "0 of 4 solved", "gate household-001-01 scope pass", "verdict"):
        assert word in ended.err


def test_run_is_listed_and_shown_by_the_beginning_of_its_id(evolve, played):
    """A run is found by a beginning of its id that fits it alone; without an id the latest is meant."""
    assert [run["run_id"] for run in evolve("runs", "list", "-C", played, "--json").document["runs"]] == [
        "household-001"
    ]
    latest = evolve("runs", "show", "-C", played)
    assert latest.out == evolve("runs", "show", "house", "-C", played).out
    assert "done (all iterations done)" in latest.out
    assert evolve("runs", "show", "service", "-C", played).code == 2


def test_candidate_is_shown_with_pattern_and_gate_by_number_or_id(evolve, played):
    """A candidate shows hypothesis, pattern with excerpt, and each stage's reason."""
    ended = evolve("candidates", "show", "1", "-C", played)
    assert ended.code == 0
    for word in ("household-001-01: rejected", "Pattern p-", "  | step", "screen", "Verdict: reject"):
        assert word in ended.out
    document = evolve("candidates", "show", "household-001-01", "-C", played, "--json").document
    assert document["verdict"]["decision"] == "reject"
    assert [stage["stage"] for stage in document["stages"]] == ["scope", "lint", "load", "replay", "screen"]


def test_requests_of_a_candidate_rejected_at_the_screen_are_told_everywhere_alike(evolve, played):
    """`candidates list`, `runs show` and `report` count the same, also where the paired test was not reached."""
    report = evolve("report", "-C", played, "--json").document["iterations"][0]["candidate"]
    asked, reused = report["requests_asked"], report["requests_reused"]
    assert asked + reused > 0
    for command in (("candidates", "list"), ("runs", "show")):
        (row,) = evolve(*command, "-C", played, "--json").document["candidates"]
        assert (row["requests_asked"], row["requests"]) == (asked, asked + reused)
    (line,) = [one for one in evolve("candidates", "list", "-C", played).out.splitlines() if "household-001-01" in one]
    assert f"{asked}  " in line
    assert f" {asked + reused}  " in line


def test_candidate_diff_is_a_patch_of_the_harness_folder(evolve, played):
    """The diff names the file that the candidate changes."""
    ended = evolve("candidates", "diff", "1", "-C", played)
    assert "+++ b/harness_artifacts/household/trajectory.py" in ended.out
    document = evolve("candidates", "diff", "1", "-C", played, "--json").document
    assert document["files"] == ["trajectory.py"]
    assert document["diff"].strip() == ended.out.strip()


def test_number_that_fits_several_ids_is_asked_back(evolve, workspace):
    """A beginning that fits several candidates ends with 2 and names them."""
    first, second = add_accepted(workspace, 2)
    ended = evolve("candidates", "show", "household-001-0", "-C", workspace)
    assert ended.code == 2
    assert first in ended.err
    assert second in ended.err


def test_trace_reads_as_a_story_of_one_episode(evolve, played):
    """A trace tells task, each step's words, call and answer, and the score."""
    listed = evolve("traces", "list", "-C", played, "--failed", "--json").document["traces"]
    assert len(listed) == 8
    ended = evolve("traces", "show", listed[0]["episode_id"][:10], "-C", played)
    for word in (listed[0]["task_id"], "Step 0", "model calls: take_action", "model says: done", "Score 0: not solved"):
        assert word in ended.out
    document = evolve("traces", "show", listed[0]["episode_id"], "-C", played, "--json").document
    assert document["episode_id"] == listed[0]["episode_id"]


def test_traces_are_narrowed_by_candidate_and_task(evolve, played):
    """`--candidate` and `--task` leave only the episodes asked for."""
    mine = evolve("traces", "list", "-C", played, "--candidate", "1", "--json").document["traces"]
    assert len({row["harness"] for row in mine}) == 1
    task = mine[0]["task_id"]
    rows = evolve("traces", "list", "-C", played, "--task", task, "--json").document["traces"]
    assert {row["task_id"] for row in rows} == {task}


def test_patterns_are_listed_by_support_and_shown_with_an_excerpt(evolve, played):
    """Patterns carry support, counter-support and an excerpt."""
    found = evolve("patterns", "list", "-C", played, "--json").document["patterns"]
    assert [len(p["tasks"]) for p in found] == sorted((len(p["tasks"]) for p in found), reverse=True)
    ended = evolve("patterns", "show", found[0]["pattern_id"], "-C", played)
    assert found[0]["title"] in ended.out
    assert "  | step" in ended.out


def test_patterns_of_an_iteration_that_is_not_there_are_refused(evolve, workspace):
    """An iteration past the last is no iteration without patterns: the run's iterations are named."""
    add_accepted(workspace, 2)
    assert evolve("patterns", "list", "-C", workspace, "--iteration", "1").code == 0
    for wrong in ("0", "7"):
        ended = evolve("patterns", "list", "-C", workspace, "--iteration", wrong)
        assert (ended.code, ended.out) == (2, "")
        assert f"run household-001 has no iteration {wrong}; its iterations are 1 to 2" in ended.err
    assert evolve("patterns", "show", "p-1", "-C", workspace, "--iteration", "7").code == 2


def test_report_is_text_json_and_one_html_file(evolve, played):
    """`report` prints the run and writes an HTML file; --json names that file."""
    document = evolve("report", "-C", played, "--json").document
    assert document["run"]["run_id"] == "household-001"
    assert Path(document["html"]).read_text().startswith("<!doctype html>")
    assert "household-001" in evolve("report", "-C", played, "--html", played / "r.html").out
    assert (played / "r.html").is_file()


def test_dry_run_and_plan_say_what_would_be_done_and_do_nothing(evolve, workspace):
    """`run --dry-run` and `plan` give tasks, bounds and the smallest gain, and leave no run behind."""
    config = ("-C", workspace, "--config", workspace / "my.toml")
    dry = evolve("run", *config, "--dry-run", "--json").document
    plan = evolve("plan", *config, "--json").document
    assert dry == plan
    assert (dry["train"], dry["guard"], dry["max_trials"]) == (4, 2, 1)
    assert dry["episodes_at_most"] > 0
    assert dry["tokens_at_most"] is None
    assert "too few for any candidate to pass" in evolve("plan", *config, "--gain", "1").out
    assert "wished for" in evolve("plan", *config, "--set", "environments.household.train=40", "--gain", "1").out
    assert not (workspace / ".evolve").exists()


@pytest.mark.parametrize("command", [("plan",), ("run", "--dry-run")])
def test_a_plan_says_what_a_run_would_refuse_for(evolve, workspace, command):
    """Looking ahead ends with 0 where a run would not begin, and says so in the run's own words, one line each."""
    (workspace / "harness_artifacts/household/mine.txt").write_text("x")
    wrong = ("-C", workspace, "--set", "proposer.kind=openai")
    ended = evolve(*command, *wrong)
    assert ended.code == 0
    told = [line for line in ended.out.splitlines() if line.startswith("  a run would refuse to begin: ")]
    all_words = ("OPENAI_API_KEY", "model.id is empty", "proposer.model is not set", "mine.txt is not committed")
    for line, words in zip(told, all_words, strict=True):
        assert words in line
    assert evolve("run", *wrong).err.removeprefix("evolve: ").strip() in told[0]
    assert "model not named yet (kind openai)" in ended.out
    assert "each played once by an arm" in ended.out
    assert evolve(*command, *wrong, "--json").document["refusals"] == [line.split(": ", 1)[1] for line in told]


def test_a_plan_of_a_run_that_would_begin_names_no_refusal(evolve, workspace):
    """Where nothing stands in the way, nothing is said to."""
    config = ("-C", workspace, "--config", workspace / "my.toml")
    assert evolve("plan", *config, "--json").document["refusals"] == []
    assert "refuse" not in evolve("plan", *config).out


@pytest.mark.parametrize("command", [("plan",), ("run", "--dry-run")])
def test_a_plan_says_that_the_ledger_does_not_read(evolve, played, command):
    """It refuses a run and is no error of looking ahead, which then goes by what is assumed."""
    config = ("-C", played, "--config", played / "my.toml")
    (played / ".evolve/ledger.sqlite").write_bytes(b"damaged" * 1000)
    plan = evolve(*command, *config, "--json")
    assert (plan.code, plan.document["noise"]["pairs"], plan.document["tokens_per_request"]) == (0, 0, None)
    refused = evolve("run", *config)
    assert (refused.code, plan.document["refusals"]) == (4, [refused.err.removeprefix("evolve: ").strip()])
    assert "the file is no SQLite database" in refused.err


def test_plan_uses_the_tokens_that_earlier_runs_measured(evolve, played):
    """After a run the plan tells tokens, and money where a price is set."""
    config = ("-C", played, "--config", played / "my.toml")
    price = "model.price={prompt=1.0, cached=0.5, completion=2.0}"
    plan = evolve("plan", *config, "--set", price, "--json").document
    assert plan["tokens_at_most"] == round(plan["requests_at_most"] * plan["tokens_per_request"])
    assert plan["cost_usd_at_most"] > 0


SLOW_RULE = """
from evolve.rules import PASS, action_rule

@action_rule(id="action.slow", strength="block", evidence="a test")
def slow(view, memory):
    if len(view.history) < 2:
        sum(range(5_000_000))
    return PASS
"""


def test_interrupted_run_ends_with_130_and_goes_on_when_resumed(evolve, workspace):
    """Ctrl-C ends a run cleanly: exit code 130, the run on record as stopped; --resume alone finishes it.

    A terminal sends it to all processes of the job; rule workers go on until their episodes have ended.
    """
    (workspace / "harness_artifacts/household/action.py").write_text(SLOW_RULE)
    for words in (("add", "harness_artifacts"), ("commit", "-qm", "a rule")):
        subprocess.run(["git", "-c", "user.name=u", "-c", "user.email=u@x", *words], cwd=workspace, check=True)
    options = ["-C", str(workspace), "--config", str(workspace / "my.toml"), "--iterations", "1", "--json"]
    options += ["--set", "environments.household.train=6", "--set", "rollout.concurrency=1"]
    command = [sys.executable, "-m", "evolve", "run", *options]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(command, start_new_session=True, **pipes)
    while process.poll() is None and not (workspace / "traces/household/train").exists():
        time.sleep(0.02)
    time.sleep(0.1)  # the second episode is under way
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate()
    assert process.returncode == 130, err
    assert json.loads(out)["status"] == "stopped"
    files = (workspace / "traces/household").rglob("*.jsonl")
    traces = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    assert len(traces) == 2
    assert "stopping: what is under way goes to its end" in err
    assert [trace["faults"] for trace in traces] == [[]] * len(traces)
    planned = evolve("run", "--resume", "-C", workspace, "--dry-run", "--json").document
    assert (planned["iterations"], planned["train"], planned["refusals"]) == (1, 6, [])
    resumed = evolve("run", "--resume", "-C", workspace, "--set", "rollout.concurrency=8", "--json").document
    assert (resumed["run_id"], resumed["status"]) == ("household-001", "done")
    options = ["--iterations", "1", "--set", "environments.household.train=6"]
    with_all = evolve("run", "--resume", "household-001", "-C", workspace, *options, "--config", workspace / "my.toml")
    assert with_all.code == 0


def test_a_resumed_run_keeps_its_limits_and_what_is_told_now_outranks_them(evolve, workspace):
    """A budget given to a run holds when it is resumed without one; another run's environment is its own."""
    config = ("-C", workspace, "--config", workspace / "my.toml")
    assert evolve("run", *config, "--env", "service_desk", "--budget-tokens", "9000").code == 5
    again = evolve("run", "--resume", "-C", workspace)
    assert again.code == 5
    assert "the budget of 9000 tokens" in again.err
    for options, tokens in (((), 9000), (("--budget-tokens", "20000"), 20000), ((), 20000)):
        evolve("run", "--resume", "-C", workspace, *options)
        plan = evolve("run", "--resume", "-C", workspace, "--dry-run", "--json").document
        assert (plan["environment"], plan["budget"]["tokens"]) == ("service_desk", tokens)
    refused = evolve("run", "--resume", "-C", workspace, "--set", "gate.screen_tasks=3")
    assert refused.code == 2
    assert "service_desk-001 was started with other settings: gate.screen_tasks (was" in refused.err
    planned = evolve("run", "--resume", "-C", workspace, "--set", "gate.screen_tasks=3", "--dry-run", "--json").document
    assert planned["refusals"] == [refused.err.removeprefix("evolve: ").strip()]


@pytest.mark.parametrize("by", ["--set", "--config"])
def test_a_run_goes_on_in_another_folder_with_the_files_it_was_told(evolve, workspace, tmp_path, monkeypatch, by):
    """A file that an option names is the one of the folder where that was said, also where another has its name."""
    (workspace / "told.toml").write_text('[model]\nscript = "script.jsonl"\n')
    told = {"--set": ("--set", "model.script=script.jsonl"), "--config": ("--config", "told.toml")}[by]
    settings = ("model.kind=scripted", "environments.household.train=4", "rollout.concurrency=1")
    options = [part for one in settings for part in ("--set", one)]
    monkeypatch.chdir(workspace)
    assert evolve("run", *options, *told, "--iterations", "1", "--budget-tokens", "3000").code == 5
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    Path("script.jsonl").write_text('{"text": "another"}\n')
    resumed = evolve("run", "--resume", "-C", workspace, "--set", "budget.tokens=", "--json").document
    assert (resumed["status"], resumed["config"]["model"]["script"]) == ("done", str(workspace / "script.jsonl"))
    traces = evolve("traces", "list", "-C", workspace, "--json").document["traces"]
    assert {trace["steps"] for trace in traces} == {14}  # the first script acts until the limit, the other just talks


def test_a_budget_that_is_spent_is_foreseen(evolve, workspace):
    """Before a run goes on it is said what it has used, half-played episodes too, and that no more can be asked."""
    config = ("-C", workspace, "--config", workspace / "my.toml", "--set", "rollout.concurrency=1")
    resume = ("run", "--resume", "-C", workspace)
    assert evolve("run", *config, "--budget-tokens", "2500").code == 5
    planned = evolve(*resume, "--dry-run", "--json").document
    tokens = planned["spent"]["prompt_tokens"] + planned["spent"]["completion_tokens"]
    assert (0 < tokens < 2500, "is used up" in str(planned["warnings"])) == (True, False)
    spent = (*resume, "--budget-tokens", str(tokens))
    ended, planned = evolve(*spent), evolve(*spent, "--dry-run", "--json").document
    told = f"the budget of {tokens} tokens is used up: {tokens} spent"
    assert (ended.code, told in ended.err) == (5, True)
    assert (told in planned["warnings"][-1], planned["refusals"]) == (True, [])
    more = evolve(*resume, "--budget-tokens", "1000000", "--dry-run").out
    assert (f"budget: tokens 1000000; {tokens:,} tokens are spent\n" in more, "is used up" in more) == (True, False)


@pytest.mark.parametrize(("budget", "limit"), [("tokens=100", "100 tokens"), ("usd=0.01", "0.01 USD")])
def test_a_budget_that_no_request_fits_in_is_foreseen(evolve, workspace, budget, limit):
    """The longest reply alone is more: a new run is warned of too, and nothing is on record by looking."""
    price = "model.price={prompt=100.0, cached=100.0, completion=100.0}"
    options = ("-C", workspace, "--config", workspace / "my.toml", "--set", price, "--set", f"budget.{budget}")
    told = f"the budget of {limit} is used up: 0 spent"
    for command in (("run", "--dry-run"), ("plan",)):
        warned = evolve(*command, *options, "--json").document["warnings"][-1]
        assert warned.startswith(f"a run would end at the first request that it has to ask the model: {told}")
    assert not (workspace / ".evolve").exists()
    ended = evolve("run", *options)
    assert (ended.code, told in ended.err) == (5, True)


def test_the_run_that_goes_on_is_the_one_of_the_environment_that_is_named(evolve, workspace, monkeypatch):
    """An option of any form, or a variable, chooses; where none does, the run that began last goes on."""
    config = ("-C", workspace, "--config", workspace / "my.toml", "--set", "budget.tokens=9000")
    assert evolve("run", *config, "--env", "service_desk").code == 5
    assert evolve("run", *config, "--env", "household").code == 5
    (workspace / "theirs.toml").write_text('environment = "service_desk"\n')
    resume = ("run", "--resume", "-C", workspace, "--dry-run", "--json")
    assert evolve(*resume).document["environment"] == "household"
    for options in (("--set", "environment=service_desk"), ("--env", "service_desk"), ("service_desk-001",)):
        assert evolve(*resume, *options).document["environment"] == "service_desk"
    named = evolve(*resume, "--config", workspace / "theirs.toml").document
    assert named["environment"] == "service_desk"
    assert any("started with other settings" in reason for reason in named["refusals"])  # it had another file
    monkeypatch.setenv("EVOLVE_ENVIRONMENT", "service_desk")
    assert evolve(*resume).document["environment"] == "service_desk"


def test_resuming_a_finished_run_asks_nothing_and_changes_nothing(evolve, played):
    """`run --resume RUN` of a finished run gives the same totals; without a name there is nothing to resume."""
    config = ("-C", played, "--config", played / "my.toml", "--iterations", "1")
    before = evolve("runs", "show", "-C", played, "--json").document
    again = evolve("run", "--resume", "household-001", *config, "--json")
    assert again.code == 0
    assert again.document["totals"] == before["totals"]
    nothing = evolve("run", "--resume", *config)
    assert nothing.code == 2
    assert "no unfinished run to resume: the only one is done. `evolve run` starts one" in nothing.err
    nothing = evolve("run", "--resume", *config, "--env", "service_desk")
    assert (
        "no unfinished run of service_desk to resume: there is none yet. `evolve run --env service_desk`" in nothing.err
    )
    unknown = evolve("run", "--resume", *config, "--env", "nowhere")
    assert unknown.code == 2
    assert "there is no environment 'nowhere'; installed are: " in unknown.err


def test_config_show_names_the_source_of_each_value_and_no_secret(evolve, workspace, monkeypatch):
    """Each value has its source, strongest last written; passwords and keys do not show."""
    monkeypatch.setenv("EVOLVE_GATE__MAX_TRIALS", "8")
    monkeypatch.setenv("OPENAI_API_KEY", "very-secret-value")
    options = ("--set", "ledger.url=postgresql://me:hunter2@db/x", "--set", "model.extra_body={a='very-secret-value'}")
    ended = evolve("config", "show", "-C", workspace, "--config", workspace / "my.toml", *options, "--json")
    values = ended.document["values"]
    assert values["gate.max_trials"] == {"value": 8, "source": "EVOLVE_GATE__MAX_TRIALS"}
    assert values["model.kind"]["source"].endswith("my.toml")
    assert values["proposer.kind"]["source"].endswith("evolve.toml")
    assert values["rollout.retries"]["source"] == "default"
    assert values["budget.usd"] == {"value": None, "source": "default"}
    assert values["ledger.url"]["source"] == "--set"
    assert "hunter2" not in ended.out
    assert "very-secret-value" not in ended.out


def test_dotenv_sets_what_the_environment_lacks(evolve, workspace, monkeypatch):
    """A variable of .env counts where the environment has none of that name."""
    (workspace / ".env").write_text("# mine\nexport EVOLVE_ITERATIONS=7 # seven\nEVOLVE_GATE__MAX_TRIALS='4'\n")
    monkeypatch.setenv("EVOLVE_GATE__MAX_TRIALS", "8")
    values = evolve("config", "show", "-C", workspace, "--json").document["values"]
    assert values["iterations"]["value"] == 7
    assert values["gate.max_trials"]["value"] == 8
    (workspace / ".env").write_text("A=1\nsecret words\n")
    ended = evolve("config", "show", "-C", workspace)
    assert ended.code == 2
    assert "line 2" in ended.err
    assert "secret words" not in ended.err


@pytest.mark.parametrize("name", ["household", "service_desk"])
def test_environment_is_shown_without_its_held_out_tasks(evolve, name):
    """`env show` gives limits, families and tools; of the held-out tasks only the commitment."""
    document = evolve("env", "show", name, "--json").document
    assert document["train"] >= 60
    assert document["guard"] >= 30
    assert "heldout-" not in json.dumps(document)
    assert name in evolve("env", "list").out
    assert evolve("env", "show", "nowhere").code == 2


def test_candidates_of_all_runs_are_listed_and_the_help_says_so(evolve, workspace):
    """`candidates list` is the one list that does not begin with the latest run; its default says so."""
    told = " ".join(evolve("candidates", "list", "--help").out.split())
    assert "[default: (all runs)]" in told
    assert "latest" not in told
