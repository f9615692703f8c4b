"""The seal on a running loop: a canary in whatever passes a boundary ends the run, and doubt about the ledger too."""

from __future__ import annotations

import base64
import json
import shutil
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import small_run

from evolve.canaries import VARIABLE, Canaries, variable_canary
from evolve.environments.household import create
from evolve.errors import CanaryFound, Interrupted, SealError, UserError
from evolve.evidence import Constraints, Evidence, write_evidence
from evolve.holding import open_ledger
from evolve.loop.accept import take
from evolve.models.scripted import reply_text
from evolve.protocols import Assignment, ModelRequest, Proposed
from evolve.records import Completion, FrozenHarness
from evolve.repository import candidate_ref, open_repository
from evolve.seal import require_whole
from evolve.store import CandidateEntry, Review, RunStatus
from evolve.store.ledger import Ledger
from evolve.workspace import Workspace

RUN, NAME = "household-001", "household-001-01"
CANARY = create({}).card.canary
SMALL = "environments.household={train=10,guard=4,heldout=4}"
BY_HAND = (SMALL, "proposer.kind=handoff", "iterations=1")
FROZEN = FrozenHarness(environment="household", name="v1", tag="evolve/household/v1", commit="c" * 40, harness="h" * 64)
RULES = """from evolve.rules import PASS, Note, trajectory_rule


@trajectory_rule(id="trajectory.tell", strength="note", evidence="two tasks")
def tell(view, memory):
    return Note("".join(chr(code - 1) for code in {codes}))
"""


@pytest.fixture(scope="module")
def _waiting(tmp_path_factory: pytest.TempPathFactory) -> Path:
    workspace = small_run.make_workspace(tmp_path_factory.mktemp("waiting") / "ws")
    small_run.run(workspace, *BY_HAND)
    return workspace.root


@pytest.fixture
def waiting(_waiting: Path, tmp_path: Path) -> Workspace:
    """A run that waits for its first candidate by hand."""
    return Workspace(Path(shutil.copytree(_waiting, tmp_path / "ws", symlinks=True)))


def note(text: str) -> str:
    return f'[[system]]\nid = "contract.note"\ntext = "{text}"\nevidence = "two tasks"\n'


def edit(workspace: Workspace, files: dict[str, str], *, hypothesis: str = "A note tells how calls are made.") -> None:
    """Propose a candidate as a person would."""
    folder = workspace.candidate_folder(NAME) / "workspace"
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    with Ledger(workspace.ledger_url, is_read_only=True) as ledger:
        pattern = ledger.patterns(RUN, 1)[0].pattern.pattern_id
    layer = "trajectory" if "trajectory.py" in files else "contract"
    proposal = {"hypothesis": hypothesis, "layer": layer, "pattern_id": pattern}
    (folder / "proposal.json").write_text(json.dumps(proposal))


def candidate(workspace: Workspace) -> CandidateEntry:
    with Ledger(workspace.ledger_url, is_read_only=True) as ledger:
        return ledger.candidate(NAME)


def files_of(workspace: Workspace) -> Iterator[Path]:
    """Yield what a run writes for others to read: traces, completions, evidence."""
    for folder in (workspace.traces, *workspace.state.glob("candidates/*/evidence")):
        yield from (path for path in folder.rglob("*") if path.is_file())


PATCHES = {
    "a note": ({"contract.toml": note(CANARY)}, {}),
    "Base64 in a comment": ({"action.py": f"# {base64.b64encode(CANARY.encode()).decode()}\n"}, {}),
    "split strings in code": ({"trajectory.py": f'KEY = "{CANARY[:15]}" "{CANARY[15:]}"\n'}, {}),
    "the name of a file": ({f"skills/{CANARY}.md": "x"}, {}),
    "a file that is not taken": ({f"{CANARY}\\.md": "x", "contract.toml": note("Act by calls.")}, {}),
    "the hypothesis": ({"contract.toml": note("Act by calls.")}, {"hypothesis": f"The answer is {CANARY}."}),
}


@pytest.mark.parametrize(("files", "told"), PATCHES.values(), ids=PATCHES.keys())
def test_a_patch_with_a_canary_is_quarantined_and_stops_the_run(
    waiting: Workspace, files: dict[str, str], told: dict[str, str]
) -> None:
    """The run ends with exit code 6; the candidate is kept under its ref, was not tested, and is never taken."""
    edit(waiting, files, **told)
    model = small_run.scripted()
    with pytest.raises(CanaryFound, match="held-out data or gold") as caught:
        small_run.run(waiting, *BY_HAND, resume="", model=model)
    assert caught.value.exit_code == 6
    assert CANARY not in str(caught.value)
    entry = candidate(waiting)
    assert (entry.review, entry.verdict) == (Review.QUARANTINED, None)
    assert model.requests == []
    with open_repository(waiting.root) as repository, Ledger(waiting.ledger_url) as ledger:
        assert repository.resolve(candidate_ref(NAME)) == entry.candidate.commit
        assert ledger.run(RUN).status is RunStatus.FAILED
        with pytest.raises(UserError, match="under quarantine"):
            take(repository, ledger, NAME, date=small_run.START)
        with pytest.raises(UserError, match="under quarantine"):
            ledger.refuse(NAME)
    with pytest.raises(CanaryFound, match="is over"):
        small_run.run(waiting, *BY_HAND, resume=RUN)


def test_the_same_patch_without_a_canary_is_judged(waiting: Workspace) -> None:
    """The control: an honest note goes through the gate, and nobody is put under quarantine."""
    edit(waiting, {"contract.toml": note("HINT: act by calls.")})
    small_run.run(waiting, *BY_HAND, resume="")
    assert candidate(waiting).verdict is not None
    assert candidate(waiting).review is not Review.QUARANTINED


def test_a_canary_that_only_running_code_puts_together_is_seen_in_the_reply(waiting: Workspace) -> None:
    """No file holds it in a form that is known; the first reply that does ends the run before a model reads it."""
    edit(waiting, {"trajectory.py": RULES.format(codes=[ord(letter) + 1 for letter in CANARY])})
    model = small_run.scripted()
    with pytest.raises(CanaryFound, match="a reply of the harness"):
        small_run.run(waiting, *BY_HAND, resume="", model=model)
    assert candidate(waiting).review is Review.QUARANTINED
    assert not any(CANARY in repr(request.messages) for request in model.requests)
    assert not any(CANARY.encode() in path.read_bytes() for path in files_of(waiting))


def test_a_request_with_a_canary_is_not_sent(tmp_path: Path) -> None:
    """A harness that the run began with gave it away: no candidate is at fault, and the model was asked nothing."""
    workspace = small_run.make_workspace(tmp_path / "ws", {"contract.toml": note(CANARY)})
    model = small_run.scripted()
    with pytest.raises(CanaryFound, match="a request to the model"):
        small_run.run(workspace, *BY_HAND, model=model)
    assert model.requests == []
    with Ledger(workspace.ledger_url, is_read_only=True) as ledger:
        assert (ledger.run(RUN).status, ledger.candidates(RUN)) == (RunStatus.FAILED, [])


def test_an_episode_with_a_canary_is_not_written(tmp_path: Path) -> None:
    """A model that knows it is noticed even by its last words, which no request repeats, and no trace repeats them."""
    last = create({}).card.step_limit - 1

    def knowing(request: ModelRequest) -> Completion:
        is_last = sum(message["role"] == "assistant" for message in request.messages) == last
        return reply_text(f"I remember {CANARY.upper()}" if is_last else "I think.")

    workspace = small_run.make_workspace(tmp_path / "ws")
    with pytest.raises(CanaryFound, match="an episode on task"):
        small_run.run(workspace, *BY_HAND, model=small_run.scripted(knowing))
    assert [path for path in workspace.traces.rglob("train/*.jsonl") if path.stat().st_size] == []


def test_evidence_with_a_canary_is_not_written(tmp_path: Path) -> None:
    """What would have shown it to a proposer is refused as a whole."""
    evidence = Evidence(
        card=create({}).card,
        tools=(),
        harness_files={CANARY: b""},
        patterns=(),
        labels=(),
        episodes=(),
        history=(),
        constraints=Constraints(),
    )
    folder = tmp_path / "evidence"
    with pytest.raises(CanaryFound, match="of the evidence"):
        write_evidence(folder, evidence, canaries=Canaries({"gold": CANARY}))
    assert not folder.exists()


AGENT = """
[agents.stub]
title = "Stub"
program = "stub-agent"
install = "write one"
argv = ["{workspace}"]
variables = [VARIABLES]
"""
SAYS = {
    "its variables": "import os\nprint(dict(os.environ))\n",
    "the ledger": "import os, pathlib, sys\n"
    "print((pathlib.Path(os.environ['LEDGER'])).read_bytes().decode('latin-1'))\n",
}


@pytest.mark.parametrize(
    ("says", "passed_on", "place"),
    [
        ("its variables", [], None),
        ("its variables", [VARIABLE], "the variables"),
        ("the ledger", ["LEDGER"], "the ledger"),
    ],
    ids=["scrubbed variables", "variables that were passed on", "the ledger itself"],
)
def test_a_transcript_with_a_canary_ends_the_run(
    tmp_path: Path, says: str, passed_on: list[str], place: str | None
) -> None:
    """An agent that read the ledger, or was given all variables, tells it in its transcript; a scrubbed one cannot."""
    workspace = small_run.make_workspace(tmp_path / "ws")
    program = tmp_path / "bin" / "stub-agent"
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable}\n{SAYS[says]}")
    program.chmod(0o755)
    (tmp_path / "agents.toml").write_text(AGENT.replace("VARIABLES", ", ".join(map(json.dumps, passed_on))))
    settings = (
        SMALL,
        "iterations=1",
        "proposer.kind=command",
        "proposer.agent=stub",
        "proposer.sandbox=off",
        f"proposer.agents_file={tmp_path / 'agents.toml'}",
    )
    ledger = workspace.state / "ledger.sqlite"
    environ = {**small_run.ENVIRON, "PATH": f"{program.parent}:/usr/bin:/bin", "LEDGER": str(ledger)}
    if place is None:
        assert small_run.run(workspace, *settings, environ=environ).entry.status is RunStatus.DONE
        return
    with pytest.raises(CanaryFound, match=rf"lies in {place}.*transcript"):
        small_run.run(workspace, *settings, environ=environ)


class Told:
    """A proposer that says what it must not know, and is then stopped by the user."""

    kind = "told"

    def __init__(self, transcripts: Path, words: str, last: str) -> None:
        self._transcripts = transcripts
        self._words = words
        self._last = last

    async def propose(self, assignment: Assignment) -> Proposed:
        self._transcripts.mkdir(parents=True, exist_ok=True)
        (self._transcripts / "told.log").write_text(self._words)
        raise Interrupted(self._last)


@pytest.mark.parametrize(
    ("words", "last", "ends_with"),
    [
        (f"{CANARY}.", "stopped", CanaryFound),
        ("Nothing.", "stopped", Interrupted),
        (json.dumps(CANARY).replace("-", "\\u002d"), CANARY, CanaryFound),  # an error quotes what was read as JSON
    ],
)
def test_a_stop_does_not_keep_a_transcript_from_being_looked_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, last: str, ends_with: type[Exception]
) -> None:
    """However its turn ends, what a proposer said until then and last is searched for canaries: nobody does later."""
    workspace = small_run.make_workspace(tmp_path / "ws")
    told = Told(workspace.transcripts, words, last)
    monkeypatch.setattr("evolve.loop.session.create_proposer", lambda *_, **__: told)
    with pytest.raises(ends_with):
        small_run.run(workspace, SMALL, "iterations=1")


def test_each_workspace_has_a_secret_of_its_own(tmp_path: Path) -> None:
    """Two ledgers have two canaries; one keeps its own; it lies also where a thief of answers would look."""
    with Ledger(tmp_path / "a.db") as one, Ledger(tmp_path / "b.db") as two:
        first = one.canary
        assert len({first, two.canary, variable_canary(first)}) == 3
    with Ledger(tmp_path / "a.db") as again:
        assert again.canary == first
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection:
        assert connection.execute("SELECT answer FROM heldout_answers").fetchall() == [(first,)]


def test_an_older_ledger_gets_a_canary_and_keeps_its_rows(tmp_path: Path) -> None:
    """A ledger of schema 1 is read as it is, and brought up to date where it is opened for writing."""
    path = tmp_path / "old.db"
    with Ledger(path) as ledger:
        ledger.start_run("r1", environment="household", model="m", base_commit="b", config={})
    with closing(sqlite3.connect(path)) as old, old:
        for table in ("quarantines", "rulers", "commitments", "heldout_answers"):
            old.execute(f"DROP TABLE {table}")
        old.execute("DELETE FROM ledger_info WHERE key = 'canary'")
        old.execute("UPDATE ledger_info SET value = '1' WHERE key = 'schema_version'")
    with Ledger(path, is_read_only=True) as ledger:
        assert (ledger.canary, ledger.ruler("r1"), ledger.commitments("household")) == ("", None, [])
    with Ledger(path) as ledger:
        assert ledger.canary.startswith("ledger-")
        assert [run.run_id for run in ledger.runs()] == ["r1"]


@pytest.fixture(scope="module")
def _done(tmp_path_factory: pytest.TempPathFactory, _waiting: Path) -> Path:
    workspace = Workspace(Path(shutil.copytree(_waiting, tmp_path_factory.mktemp("done") / "ws", symlinks=True)))
    edit(workspace, {"contract.toml": note("HINT: act by calls.")})
    small_run.run(workspace, *BY_HAND, resume="")
    return workspace.root


@pytest.fixture
def done(_done: Path, tmp_path: Path) -> Workspace:
    """A workspace with a finished run and one candidate."""
    return Workspace(Path(shutil.copytree(_done, tmp_path / "ws", symlinks=True)))


LOSSES = {
    "the whole ledger": None,
    "the run": "DELETE FROM runs",
    "the candidate, an earlier one": "DELETE FROM candidates WHERE number = 1",
}


@pytest.mark.parametrize("statement", LOSSES.values(), ids=LOSSES.keys())
def test_a_ledger_that_lacks_what_git_shows_stops_everything(done: Workspace, statement: str | None) -> None:
    """Whoever deletes the ledger, or rows of it, gets no new run, and is told what to restore."""
    if statement is None:
        for path in done.state.glob("ledger.sqlite*"):
            path.unlink()
    else:
        with closing(sqlite3.connect(done.state / "ledger.sqlite")) as connection, connection:
            connection.execute(statement)
    if "candidates" in (statement or ""):
        with open_repository(done.root) as repository:
            commit = repository.commit(candidate_ref(NAME))
            repository.update_ref(candidate_ref(f"{RUN}-02"), commit, None)
    with pytest.raises(SealError, match="deleted, replaced or altered"):
        small_run.run(done, *BY_HAND)


def test_a_whole_ledger_is_let_through(done: Workspace) -> None:
    """The control; a ref that a kill left before its row was written is no sign of tampering."""
    with open_repository(done.root) as repository, open_ledger(done, small_run.configured()) as ledger:
        require_whole(repository, ledger)
        repository.update_ref(candidate_ref(f"{RUN}-02"), repository.head_commit(), None)
        require_whole(repository, ledger)


def test_the_commitment_stands_in_the_ledger_from_the_first_run_on(done: Workspace) -> None:
    """It is the digest of the held-out tasks that this run would be evaluated on, with the options they follow from."""
    options = small_run.configured(SMALL).environments["household"]
    with Ledger(done.ledger_url, is_read_only=True) as ledger:
        (made,) = ledger.commitments("household")
    assert (made.digest, made.options) == (create(options).heldout_digest(), options)


def test_another_held_out_split_may_be_chosen_until_the_first_look_only(tmp_path: Path) -> None:
    """With the same options it must be the same split; other options are a free choice until somebody has looked."""
    with Ledger(tmp_path / "ledger.db") as ledger:
        first = ledger.commit_heldout("household", {"heldout": 4}, "a" * 64)
        assert ledger.commit_heldout("household", {"heldout": 4}, "a" * 64) == first
        with pytest.raises(SealError, match=r"committed itself to.*the commitment is a{64}"):
            ledger.commit_heldout("household", {"heldout": 4}, "b" * 64)
        ledger.commit_heldout("household", {"heldout": 5}, "c" * 64)
        assert [made.digest[0] for made in ledger.commitments("household")] == ["a", "c"]
        ledger.save_freeze(FROZEN)
        ledger.open_look(environment="household", frozen_name="v1", harness=FROZEN.harness, model="m")
        with pytest.raises(SealError, match="were looked at already"):
            ledger.commit_heldout("household", {"heldout": 6}, "d" * 64)
        assert ledger.commit_heldout("household", {"heldout": 4}, "a" * 64) == first


def test_a_split_that_was_not_looked_at_is_closed_by_the_look_at_another(tmp_path: Path) -> None:
    """Two splits were committed to and one was looked at: the other is refused from then on."""
    with Ledger(tmp_path / "ledger.db") as ledger:
        for heldout, digest in ((4, "a" * 64), (5, "c" * 64)):
            ledger.commit_heldout("household", {"heldout": heldout}, digest)
            ledger.save_freeze(
                FROZEN.model_copy(update={"name": f"v{heldout}", "manifest": {"heldout_commitment": digest}})
            )
        ledger.open_look(environment="household", frozen_name="v5", harness=FROZEN.harness, model="m")
        ledger.commit_heldout("household", {"heldout": 5}, "c" * 64)
        with pytest.raises(SealError, match=r"already, with environments\.household\.heldout=5; .* with environments"):
            ledger.commit_heldout("household", {"heldout": 4}, "a" * 64)
