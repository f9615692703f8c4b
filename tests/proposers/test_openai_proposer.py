"""The openai proposer: end to end over HTTP, and each way in which a model can misuse its tools."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from models.http_endpoint import chat, serving

from evolve.errors import ProposerError
from evolve.models.openai import OpenAIModel
from evolve.models.scripted import ScriptedModel, reply_call, reply_text
from evolve.models.settings import ModelSettings
from evolve.proposers.openai import OpenAIProposer
from evolve.protocols import Assignment, Model, Proposed
from evolve.records import Completion, Layer

PROPOSAL = {
    "hypothesis": "the model does not know rule 4",
    "layer": "contract",
    "pattern_id": "p1",
    "predicts_fixed": ["t"],
}
EDIT = reply_call("write_file", path="workspace/contract.toml", content="# note")
PROPOSE = reply_call("propose", **PROPOSAL)


@pytest.fixture
def assignment(tmp_path: Path) -> Assignment:
    for name in ("workspace", "evidence"):
        (tmp_path / name).mkdir()
    (tmp_path / "workspace" / "harness.toml").write_text("schema_version = 1\n")
    (tmp_path / "evidence" / "brief.md").write_text("# The brief\n")
    (tmp_path / "evidence" / "long.md").write_text("a" * 20_000)
    (tmp_path / "secret.txt").write_text("held-out")
    (tmp_path / "workspace" / "link.md").symlink_to(tmp_path / "secret.txt")
    (tmp_path / "workspace" / "folder").symlink_to(tmp_path)
    return Assignment("desk", 2, tmp_path / "workspace", tmp_path / "evidence", timeout_s=10)


def proposer(model: Model, assignment: Assignment, **options: Any) -> OpenAIProposer:
    return OpenAIProposer(
        model,
        check=lambda folder: f"checked {sorted(p.name for p in folder.glob('*.toml'))}",
        replay=lambda folder: "fires nowhere",
        transcripts=assignment.workspace.parent / "transcripts",
        **options,
    )


def converse(assignment: Assignment, replies: Sequence[Completion]) -> tuple[Proposed, list[str]]:
    """Return what was proposed and the answers of the tools."""
    model = ScriptedModel(replies)
    proposed = asyncio.run(proposer(model, assignment).propose(assignment))
    assert proposed.transcript is not None
    messages = [json.loads(line) for line in proposed.transcript.read_text().splitlines()]
    return proposed, [message["content"] for message in messages if message["role"] == "tool"]


def test_a_patch_is_made_over_a_real_endpoint(assignment: Assignment) -> None:
    """Over HTTP the model lists, reads, writes, checks, replays and proposes; usage is the sum of its replies."""
    steps: list[tuple[str, dict[str, Any]]] = [
        ("list_files", {}),
        ("read_file", {"path": "evidence/brief.md"}),
        ("write_file", {"path": "workspace/contract.toml", "content": "# note"}),
        ("check", {}),
        ("replay", {}),
        ("propose", PROPOSAL),
    ]

    async def story() -> tuple[Proposed, list[dict[str, Any]]]:
        async with serving(*(chat(calls=[(name, json.dumps(arguments))]) for name, arguments in steps)) as endpoint:
            model = OpenAIModel(ModelSettings(id="m", base_url=endpoint.url, api_key_env=None))
            try:
                return await proposer(model, assignment).propose(assignment), endpoint.bodies
            finally:
                await model.close()

    proposed, bodies = asyncio.run(story())
    assert proposed.proposal is not None
    assert (proposed.proposal.layer, proposed.proposal.predicts_fixed) == (Layer.CONTRACT, ("t",))
    assert (assignment.workspace / "contract.toml").read_text() == "# note"
    assert (proposed.usage.prompt_tokens, proposed.usage.completion_tokens) == (60, 12)
    assert {tool["function"]["name"] for tool in bodies[0]["tools"]} >= {name for name, _ in steps}
    assert "# The brief" in bodies[0]["messages"][1]["content"]
    answers = [message["content"] for message in bodies[-1]["messages"] if message["role"] == "tool"]
    assert answers[1:] == [
        "# The brief\n",
        "Wrote 6 bytes to workspace/contract.toml.",
        f"checked {TOMLS}",
        "fires nowhere",
    ]
    assert "evidence/brief.md (12 bytes)" in answers[0]
    assert "link.md" not in answers[0]


TOMLS = ["contract.toml", "harness.toml"]


@pytest.mark.parametrize(
    "path",
    [
        "workspace/../secret.txt",
        "/etc/passwd",
        "secret.txt",
        "workspace/link.md",
        "workspace/folder/secret.txt",
        "evidence",
        "",
    ],
)
def test_no_path_leads_out_of_the_two_folders(assignment: Assignment, path: str) -> None:
    """Neither reading nor writing follows links, parents or absolute paths."""
    replies = [
        reply_call("read_file", path=path),
        reply_call("write_file", path=path, content="overwritten"),
        reply_call("nothing_to_propose", reason="none"),
    ]
    _, answers = converse(assignment, replies)
    assert not any("held-out" in answer or answer.startswith("Wrote") for answer in answers)
    assert (assignment.workspace.parent / "secret.txt").read_text() == "held-out"


@pytest.mark.parametrize(
    ("call", "answer"),
    [
        (reply_call("write_file", path="evidence/brief.md", content="x"), "Only files under workspace/"),
        (reply_call("write_file", path="workspace/.git/config", content="x"), "A path begins with"),
        (reply_call("write_file", path="workspace/a.md", content="x" * 70_000), "70000 bytes; a file may have 65536"),
        (reply_call("write_file", path="workspace/proposal.json", content="{}"), "Call propose"),
        (reply_call("write_file", path="workspace/a.md"), "missing: content"),
        (reply_call("read_file", path=7), "of the wrong type: path"),
        (reply_call("read_file", path="workspace/none.md"), "Failed: No such file"),
        (reply_call("read_file", path="evidence/long.md", offset=4000), "a" * 16_000),
        (
            reply_call("read_file", path="evidence/long.md"),
            "a" * 16_000 + "\n[4000 more characters; read on at offset 16000]",
        ),
        (reply_call("shell", command="ls"), "There is no tool 'shell'"),
        (PROPOSE, "No harness file was changed yet"),
    ],
)
def test_a_wrong_call_is_answered_and_the_conversation_goes_on(
    assignment: Assignment, call: Completion, answer: str
) -> None:
    """Whatever the model gets wrong is said to it; nothing is raised and nothing is written."""
    proposed, answers = converse(assignment, [call, reply_call("nothing_to_propose", reason="none")])
    assert answers[0].startswith(answer)
    assert proposed.proposal is None
    assert not (assignment.workspace / "a.md").exists()


def test_an_invalid_proposal_can_be_mended(assignment: Assignment) -> None:
    """A refused proposal names its faults, and the next one is taken."""
    wrong = reply_call("propose", **(PROPOSAL | {"layer": "brain"}))
    proposed, answers = converse(assignment, [EDIT, wrong, PROPOSE])
    assert answers[1].startswith("Not a valid proposal: layer:")
    assert proposed.proposal is not None


def test_an_edit_cannot_be_dropped_in_silence(assignment: Assignment) -> None:
    """With files changed, nothing_to_propose is refused: the workspace would differ from what was said."""
    _, answers = converse(assignment, [EDIT, reply_call("nothing_to_propose", reason="none"), PROPOSE])
    assert answers[1].startswith("Harness files were changed")


def test_a_model_that_only_talks_is_reminded_and_then_given_up(assignment: Assignment) -> None:
    """Three replies without a call in a row end it; one call in between starts the count again."""
    talk = reply_text("I would add a note.")
    converse(assignment, [talk, talk, EDIT, talk, talk, PROPOSE])
    with pytest.raises(ProposerError, match="no tool call in 3 replies"):
        converse(assignment, [talk, talk, talk])


def test_turns_and_time_are_limited(assignment: Assignment) -> None:
    """A model that reads for ever is stopped by turns, a slow one by the clock; the transcript is kept."""
    endless = ScriptedModel(lambda request: reply_call("list_files"))
    with pytest.raises(ProposerError, match="within 4 turns"):
        asyncio.run(proposer(endless, assignment, turn_limit=4).propose(assignment))
    slow = ScriptedModel(lambda request: reply_call("list_files"), latency_s=5)
    hurried = Assignment("desk", 9, assignment.workspace, assignment.evidence, timeout_s=0.1)
    with pytest.raises(ProposerError, match=r"within 0\.1 s"):
        asyncio.run(proposer(slow, hurried).propose(hurried))
    assert (assignment.workspace.parent / "transcripts" / "desk-009-openai.jsonl").exists()
