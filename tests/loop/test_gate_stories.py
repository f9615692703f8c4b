"""What becomes of a patch: real runs on the household, a scripted agent, and an edit by hand for each story."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
import small_run

from evolve.loop.run import Ending
from evolve.records import Json, StageResult
from evolve.repository import candidate_ref, open_repository, run_branch
from evolve.store import CandidateEntry
from evolve.store.ledger import Ledger
from evolve.workspace import Workspace

BY_HAND = ("iterations=1", "proposer.kind=handoff")
CANDIDATE, RUN = "household-001-01", "household-001"
RULES = "from evolve.rules import PASS, Block, Note, Rewrite, action_rule, trajectory_rule\n\n\n"

RESCUE = (
    RULES
    + '''@action_rule(id="action.rescue", strength="rewrite", evidence="8 of 20 tasks: calls written as text")
def rescue(view, memory):
    """Run the one call that a reply spells out."""
    if view.proposed is None and view.text.startswith('take_action(action="'):
        return Rewrite("take_action", {"action": view.text.split('"')[1]})
    return PASS
'''
)
HARM = (
    RULES
    + '''@action_rule(id="action.never-open", strength="block", evidence="a mistaken idea")
def never_open(view, memory):
    """Stop the model from going anywhere."""
    if view.proposed and "go to" in str(view.proposed.arguments):
        return Block("Stay here.")
    return PASS
'''
)
IDLE = (
    RULES
    + '''@trajectory_rule(id="trajectory.idle", strength="note", evidence="none")
def idle(view, memory):
    """Say nothing."""
    return PASS
'''
)


@dataclass(frozen=True)
class Story:
    """A workspace that waits for an edit, and what came of it."""

    workspace: Workspace

    def edit(self, files: dict[str, str], *, layer: str = "action") -> CandidateEntry:
        """Write files and a proposal, resume the run, and return the candidate as the ledger has it."""
        folder = self.workspace.candidate_folder(CANDIDATE) / "workspace"
        for path, text in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)
        (folder / "proposal.json").write_text(json.dumps(self.proposal(layer)))
        small_run.run(self.workspace, *BY_HAND, resume="")
        with Ledger(self.workspace.ledger_url, is_read_only=True) as ledger:
            return ledger.candidate(CANDIDATE)

    def proposal(self, layer: str) -> Json:
        """Propose for the pattern of calls written as text."""
        with Ledger(self.workspace.ledger_url, is_read_only=True) as ledger:
            found = [entry.pattern for entry in ledger.patterns(RUN) if entry.pattern.signature == "call_as_text:code"]
        hypothesis = "The call that a reply spells out can be run as it stands."
        return {"schema_version": 1, "hypothesis": hypothesis, "layer": layer, "pattern_id": found[0].pattern_id}


@pytest.fixture(scope="module")
def handed_over(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace whose run has rolled out the incumbent and waits for an edit by hand."""
    workspace = small_run.make_workspace(tmp_path_factory.mktemp("handed-over") / "workspace")
    assert small_run.run(workspace, *BY_HAND).outcome.ending is Ending.WAITING
    return workspace.root


@pytest.fixture
def story(handed_over: Path, tmp_path: Path) -> Story:
    """A copy of that workspace."""
    return Story(Workspace(Path(shutil.copytree(handed_over, tmp_path / "workspace", symlinks=True))))


def last_stage(entry: CandidateEntry) -> StageResult:
    assert entry.verdict is not None
    return entry.verdict.stages[-1]


def test_a_patch_that_helps_becomes_a_commit_on_the_branch_of_the_run(story: Story) -> None:
    """An accepted candidate is a commit with trailers that name run, candidate, verdict, effect and evidence."""
    entry = story.edit({"action.py": RESCUE})
    assert entry.verdict is not None
    assert [stage.stage for stage in entry.verdict.stages][-1] == "confirmation"
    with open_repository(story.workspace.root) as repository:
        tip = repository.commit(run_branch(RUN))
        said = repository.trailers(tip)
        assert repository.read_files(tip, "harness_artifacts/household")["action.py"] == RESCUE.encode()
        assert repository.resolve(f"{tip}^") == entry.candidate.parent_commit
        assert repository.head_commit() == entry.candidate.parent_commit
    assert (said.run, said.candidate, said.verdict) == (RUN, CANDIDATE, "accept")
    assert said.effect == "+0.400"
    assert said.evidence == entry.verdict.evidence_digest


def test_a_patch_that_would_have_hindered_a_success_is_rejected_before_any_model_is_asked(story: Story) -> None:
    """Replay finds the useful calls that a rule would have blocked, and names the task and the step."""
    entry = story.edit({"action.py": HARM})
    assert (last_stage(entry).stage, last_stage(entry).outcome) == ("replay", "reject")
    assert "would have been blocked with: Stay here." in last_stage(entry).reasons[0]
    assert entry.verdict is not None
    assert entry.verdict.requests_asked == 0
    with open_repository(story.workspace.root) as repository:
        assert repository.commit(candidate_ref(CANDIDATE)) == entry.candidate.commit
        assert repository.commit(run_branch(RUN)) == entry.candidate.parent_commit


def test_a_patch_that_changes_nothing_is_rejected_in_the_screen(story: Story) -> None:
    """A rule that never fires on the tasks it targets is not tested at length."""
    entry = story.edit({"trajectory.py": IDLE}, layer="trajectory")
    assert (last_stage(entry).stage, last_stage(entry).outcome) == ("screen", "reject")
    assert "changes no request" in last_stage(entry).reasons[0]


@pytest.mark.parametrize(
    ("files", "layer", "stage", "words"),
    [
        ({"notes.txt": "hello"}, "action", "lint", "notes.txt"),
        ({"action.py": f"import os\n{RESCUE}"}, "action", "lint", "os"),
        ({"action.py": RESCUE}, "trajectory", "scope", "names layer trajectory"),
        ({"action.py": RESCUE.replace("action.rescue", "trajectory.rescue")}, "action", "lint", "trajectory.rescue"),
        ({"action.py": RESCUE + "SEEN = frozenset((1, missing))\n"}, "action", "load", "missing"),
    ],
)
def test_a_forbidden_patch_is_rejected_by_the_stage_that_looks_for_it(
    story: Story, files: dict[str, str], layer: str, stage: str, words: str
) -> None:
    """Foreign files, imports that reach the system, a wrong layer, a wrong id and code that fails are each refused."""
    entry = story.edit(files, layer=layer)
    assert (last_stage(entry).stage, last_stage(entry).outcome) == (stage, "reject")
    assert words in " ".join(last_stage(entry).reasons)


def test_a_link_out_of_the_folder_is_refused(story: Story) -> None:
    """What is no plain file under the harness folder is not taken, and the candidate is rejected for trying."""
    folder = story.workspace.candidate_folder(CANDIDATE) / "workspace"
    (folder / "skills").mkdir()
    (folder / "skills" / "all.md").symlink_to("/etc/passwd")
    entry = story.edit({"action.py": RESCUE})
    assert (last_stage(entry).stage, last_stage(entry).outcome) == ("scope", "reject")
    assert "skills/all.md" in last_stage(entry).reasons[0]


def test_a_task_that_is_given_away_is_found(story: Story) -> None:
    """A contract note that holds the text of a training task is a leak."""
    (user,) = {user for user, (number, _) in small_run._plans().items() if number == 1}
    text = user.partition("Task: ")[2]
    note = f'[[system]]\nid = "contract.answer"\ntext = {json.dumps("HINT: " + text)}\nevidence = "none"\n'
    entry = story.edit({"contract.toml": note}, layer="contract")
    assert (last_stage(entry).stage, last_stage(entry).outcome) == ("lint", "reject")
    assert last_stage(entry).numbers["leaks"] >= 1


def test_an_edit_that_is_not_there_leaves_the_run_waiting(story: Story) -> None:
    """Resuming without a proposal waits on, and what was edited so far stays."""
    draft = story.workspace.candidate_folder(CANDIDATE) / "workspace" / "action.py"
    draft.write_text("# a beginning\n")
    assert small_run.run(story.workspace, *BY_HAND, resume="").outcome.ending is Ending.WAITING
    assert draft.read_text() == "# a beginning\n"
