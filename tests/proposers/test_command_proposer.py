"""The command proposer against a real program that does what coding agents do, well and badly."""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
import time
from pathlib import Path

import pytest

from evolve.errors import ProposerError, UserError
from evolve.proposers.agents import read_rows
from evolve.proposers.command import CommandProposer
from evolve.protocols import Assignment, Proposed

PROPOSAL = """{"hypothesis": "a note about pending orders", "layer": "contract", "pattern_id": "p1",
"predicts_fixed": ["t-1"]}"""
EDIT = f"""
import json, os, pathlib, sys, time, subprocess
pathlib.Path("contract.toml").write_text("# note")
pathlib.Path("proposal.json").write_text({PROPOSAL!r})
"""


@pytest.fixture
def assignment(tmp_path: Path) -> Assignment:
    for name in ("workspace", "evidence"):
        (tmp_path / name).mkdir()
    (tmp_path / "workspace" / "harness.toml").write_text('schema_version = 1\nenvironment = "desk"\n')
    return Assignment("desk", 3, tmp_path / "workspace", tmp_path / "evidence", timeout_s=20)


def run(assignment: Assignment, script: str, timeout_s: float = 20, **environ: str) -> Proposed:
    """Let a stub agent do `script` in the workspace."""
    folder = assignment.workspace.parent
    stub = folder / "stub-agent"
    stub.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {shlex.quote(str(folder / "stub.py"))} "$@"\n')
    stub.chmod(0o755)
    (folder / "stub.py").write_text(script)
    row = read_rows(
        """
        [agents.stub]
        title = "Stub"
        program = "stub-agent"
        install = "write one"
        argv = ["run", "{prompt}", "{evidence}"]
        model_argv = ["--model={model}"]
        keys = ["STUB_KEY"]
        set_variables = { QUIET = "1" }
        [[agents.stub.failure]]
        event = { type = "failed" }
        words = "why"
        [agents.stub.usage]
        event = { type = "end" }
        mode = "sum"
        prompt_tokens = ["u.in", "u.cached"]
        cached_tokens = ["u.cached"]
        completion_tokens = ["u.out"]
        cost_usd = ["cost"]
        """,
        "test",
    )["stub"]
    path = f"{folder}{os.pathsep}{os.environ['PATH']}"
    proposer = CommandProposer(
        row, environ={"PATH": path, "HOME": str(folder), **environ}, transcripts=folder / "transcripts", model="m-1"
    )
    assert proposer.kind == "command:stub"
    assigned = Assignment("desk", 3, assignment.workspace, assignment.evidence, timeout_s=timeout_s)
    return asyncio.run(proposer.propose(assigned))


def transcript(proposed: Proposed) -> str:
    assert proposed.transcript is not None
    return proposed.transcript.read_text("utf-8")


def test_a_good_agent_gives_a_proposal_an_edit_and_its_usage(assignment: Assignment) -> None:
    """The edit stays in the workspace, the proposal is validated, events are summed into usage."""
    events = """
for _ in range(2):
    print(json.dumps({"type": "end", "u": {"in": 10, "cached": 5, "out": 3}, "cost": 0.25}))
print("not an event")
"""
    proposed = run(assignment, EDIT + events)
    assert proposed.proposal is not None
    assert proposed.proposal.predicts_fixed == ("t-1",)
    assert (assignment.workspace / "contract.toml").read_text() == "# note"
    usage = proposed.usage
    assert (usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens, usage.cost_usd) == (30, 10, 6, 0.5)
    assert "not an event" in transcript(proposed)


def test_the_agent_is_told_what_to_do_and_where(assignment: Assignment) -> None:
    """Prompt, evidence folder and model arrive as arguments; the prompt names brief, workspace and check."""
    proposed = run(assignment, EDIT + "print(json.dumps(sys.argv))")
    said = transcript(proposed)
    for expected in ("brief.md", str(assignment.workspace), "evolve harness check .", "--model=m-1", "proposal.json"):
        assert expected in said
    assert (assignment.evidence / "task.md").read_text().startswith("You improve the harness")


def test_a_hanging_agent_is_ended_with_its_children(assignment: Assignment, tmp_path: Path) -> None:
    """On timeout the whole process group goes, also a child that ignores the polite signal and holds the pipes."""
    script = (
        EDIT
        + """
deaf = "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(60)"
child = subprocess.Popen([sys.executable, "-c", deaf])
pathlib.Path("../child").write_text(str(child.pid))
time.sleep(60)
"""
    )
    start = time.monotonic()
    with pytest.raises(ProposerError, match=r"stopped after 1\.5 s"):
        run(assignment, script, timeout_s=1.5)
    assert time.monotonic() - start < 50
    assert has_ended(int((tmp_path / "child").read_text()))


def test_an_agent_that_leaves_children_behind_does_not_hold_us_up(assignment: Assignment, tmp_path: Path) -> None:
    """A child that outlives its agent and holds the pipes is ended at once."""
    script = (
        EDIT
        + """
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
pathlib.Path("../child").write_text(str(child.pid))
"""
    )
    start = time.monotonic()
    assert run(assignment, script).proposal is not None
    assert time.monotonic() - start < 50
    assert has_ended(int((tmp_path / "child").read_text()))


def has_ended(pid: int) -> bool:
    """Tell whether a killed process is gone within ten seconds; one that waits to be reaped is."""
    status = Path(f"/proc/{pid}/stat")
    deadline = time.monotonic() + 10
    while status.exists() and status.read_text().rsplit(")", 1)[1].split()[0] not in "ZX":
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def test_a_huge_line_without_an_end_is_read(assignment: Assignment) -> None:
    """Two megabytes on one line neither fail nor stall, and the event behind them is still read."""
    proposed = run(
        assignment,
        EDIT + 'sys.stdout.write("x" * 2_000_000 + "\\n" + json.dumps({"type": "end", "u": {"out": 7}}))',
    )
    assert proposed.usage.completion_tokens == 7
    assert len(transcript(proposed)) > 2_000_000


def test_an_agent_that_changes_nothing_has_nothing_to_propose(assignment: Assignment) -> None:
    """Without an edit there is no proposal, whatever the agent says."""
    assert run(assignment, "print('all done, I fixed it')").proposal is None


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ('{"hypothesis": "too short"}', "hypothesis: .*layer: Field required"),
        ("not json", "not valid JSON"),
        ('{"hypothesis": "a good enough idea", "layer": "brain", "pattern_id": "p1"}', "layer: "),
        ('{"hypothesis": "a good enough idea", "layer": "skill", "pattern_id": "p1", "score": 1}', "score: Extra"),
        (" " * 70_000, "at most 65536 bytes"),
        (None, "missing although harness files were edited"),
    ],
)
def test_an_invalid_proposal_is_refused_with_its_fault(
    assignment: Assignment, content: str | None, complaint: str
) -> None:
    """What is wrong with proposal.json is said by field."""
    write = f"pathlib.Path('proposal.json').write_text({content!r})" if content else "os.remove('proposal.json')"
    with pytest.raises(ProposerError, match=complaint):
        run(assignment, EDIT + write)


def test_a_proposal_that_is_a_link_is_not_followed(assignment: Assignment, tmp_path: Path) -> None:
    """A link to a file outside the workspace is refused, valid though its content is."""
    (tmp_path / "elsewhere.json").write_text(PROPOSAL)
    with pytest.raises(ProposerError, match="cannot be read"):
        run(assignment, EDIT + "os.remove('proposal.json'); os.symlink('../elsewhere.json', 'proposal.json')")


def test_standard_input_is_closed(assignment: Assignment) -> None:
    """An agent that reads its input gets the end of file at once instead of waiting for ever."""
    proposed = run(assignment, EDIT + "print('read', len(sys.stdin.read()), 'characters')")
    assert "read 0 characters" in transcript(proposed)


def test_keys_do_not_reach_the_transcript(assignment: Assignment) -> None:
    """A printed key is cut out, by value and by shape, on both streams and across writes and long lines."""
    script = (
        EDIT
        + """
key, shaped = os.environ["STUB_KEY"], "sk-" + "abcDEF123" * 5
print("key", key, shaped); print(key, file=sys.stderr)
for part in (key[:5], key[5:], "\\n"):
    sys.stdout.write(part); sys.stdout.flush(); time.sleep(0.05)
sys.stdout.write(("y" * 997 + key) * 300 + shaped)
"""
    )
    said = transcript(run(assignment, script, STUB_KEY="plain-words-as-a-key"))
    assert "plain-words-as-a-key" not in said
    assert "abcDEF123" not in said
    assert said.count("[secret removed]") == 305


def test_the_agent_gets_only_the_variables_that_its_row_names(assignment: Assignment) -> None:
    """Its own key and the plain variables arrive; other credentials do not."""
    proposed = run(
        assignment,
        EDIT + "print(sorted(os.environ)); print('key length', len(os.environ['STUB_KEY']))",
        STUB_KEY="plain-words-as-a-key",
        OTHER_API_KEY="not yours",
        LANG="C.UTF-8",
    )
    said = transcript(proposed)
    assert "key length 20" in said
    assert "'QUIET'" in said
    assert "OTHER_API_KEY" not in said


def test_a_failing_agent_is_an_error_with_its_last_words(assignment: Assignment) -> None:
    """An exit code other than 0 discards the edit and quotes what was printed last, keys removed."""
    with pytest.raises(ProposerError, match=r"exit code 3: login expired for \[secret removed\]"):
        run(
            assignment,
            EDIT + "sys.exit(print('login expired for', os.environ['STUB_KEY'], file=sys.stderr) or 3)",
            STUB_KEY="plain-words-as-a-key",
        )


TELLS = """
why = "no credit\\x1b]0;x\\x07 left,\\nsaid " + os.environ["STUB_KEY"]
print(json.dumps({"type": "failed", "why": why}), flush=True)
print("stack trace", file=sys.stderr)
"""


def test_an_agent_that_tells_why_it_failed_is_quoted_instead(assignment: Assignment) -> None:
    """Its own words outrank the last line, in one line and without keys; the rest stands in the transcript."""
    with pytest.raises(ProposerError, match=r"exit code 3: no credit ]0;x left, said \[secret removed\]; see "):
        run(assignment, EDIT + TELLS + "sys.exit(3)", STUB_KEY="plain-words-as-a-key")


def test_an_agent_that_was_stopped_is_quoted_with_its_last_error(assignment: Assignment) -> None:
    """An agent that asks again and again until its time is up has told why."""
    with pytest.raises(ProposerError, match=r"after 1 s; its last error: no credit ]0;x left, said \[secret removed\]"):
        run(assignment, EDIT + TELLS + "time.sleep(60)", timeout_s=1, STUB_KEY="plain-words-as-a-key")


def test_a_missing_program_names_the_command_that_installs_it(assignment: Assignment, tmp_path: Path) -> None:
    """The user can mend it, so it is a user error."""
    table = (
        '[agents.g]\ntitle = "Ghost"\nprogram = "ghost-agent"\ninstall = "npm install -g ghost"\nargv = ["{prompt}"]'
    )
    proposer = CommandProposer(read_rows(table, "test")["g"], environ={"PATH": ""}, transcripts=tmp_path)
    with pytest.raises(UserError, match="npm install -g ghost"):
        asyncio.run(proposer.propose(assignment))
