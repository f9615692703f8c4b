"""Puts candidates that the gate accepted into a workspace, by way of repository and ledger."""

from datetime import UTC, datetime
from pathlib import Path

from evolve.environments.household import create
from evolve.harness.digest import harness_digest
from evolve.loop.accept import seal_accepted
from evolve.records import (
    Candidate,
    Decision,
    FailureClass,
    Layer,
    ModelFingerprint,
    Pattern,
    Proposal,
    StageResult,
    Verdict,
)
from evolve.repository import candidate_ref, harness_folder, open_repository, run_branch
from evolve.ruler import measure
from evolve.store import RunStatus
from evolve.store.ledger import Ledger
from evolve.workspace import Workspace

DATE = datetime(2026, 1, 2, tzinfo=UTC)
RUN = "household-001"
MODEL = ModelFingerprint(model_id="m", endpoint="scripted", protocol="tools", sampling={})


def add_accepted(root: Path, count: int = 1) -> list[str]:
    """Add a run with `count` accepted candidates, each built on the one before; return their ids."""
    workspace = Workspace(root)
    workspace.state.mkdir(exist_ok=True)
    with open_repository(root) as repository, Ledger(workspace.ledger_url) as ledger:
        base = repository.head_commit()
        config = {"gate": {"policy": "standard"}}
        ledger.start_run(RUN, environment="household", model=MODEL.digest, base_commit=base, config=config)
        ruler = measure(create({}), model=MODEL, harness={}, gate=config["gate"])
        ledger.save_ruler(RUN, ruler.model_dump(mode="json"))
        names, parent = [], base
        for number in range(1, count + 1):
            candidate = _candidate(repository, parent, number)
            ledger.save_patterns(RUN, number, [_pattern()])
            ledger.add_candidate(candidate)
            verdict = _verdict(candidate)
            for stage in verdict.stages:
                ledger.save_stage(candidate.candidate_id, stage)
            ledger.save_verdict(verdict)
            names.append(candidate.candidate_id)
            parent = seal_accepted(repository, candidate, verdict, ruler=ruler.digest, date=DATE)
        repository.update_ref(run_branch(RUN), parent, None)
        ledger.finish_run(RUN, RunStatus.DONE, "all iterations done")
    return names


def _candidate(repository, parent: str, number: int) -> Candidate:
    folder = harness_folder("household")
    old = repository.read_files(parent, folder)
    note = f'[[system]]\nid = "contract.note-{number}"\ntext = "Say it {number} times."\nevidence = "two tasks"\n'
    new = old | {"contract.toml": old.get("contract.toml", b"") + note.encode()}
    name = f"{RUN}-{number:02d}"
    commit = repository.commit_files(parent, folder, new, message=name, date=DATE)
    repository.update_ref(candidate_ref(name), commit, None)
    return Candidate(
        candidate_id=name,
        run_id=RUN,
        number=number,
        environment="household",
        parent_commit=parent,
        commit=commit,
        parent_harness=harness_digest(old),
        harness=harness_digest(new),
        proposer="mechanic",
        proposal=Proposal(hypothesis=f"The note {number} helps the model.", layer=Layer.CONTRACT, pattern_id="p-1"),
        files=("contract.toml",),
    )


def _pattern() -> Pattern:
    return Pattern(
        pattern_id="p-1",
        environment="household",
        failure_class=FailureClass.CONTRACT,
        signature="text_only",
        title="Text only",
        tasks=("t1", "t2"),
        counter_support=0,
        excerpt="step 0 model says: \x1b[31mdone",
    )


def _verdict(candidate: Candidate) -> Verdict:
    stages = (
        StageResult(stage="scope", outcome="pass", reasons=("1 file(s) changed: contract.toml.",)),
        StageResult(stage="confirmation", outcome="accept", reasons=("The gain shows again.",)),
    )
    return Verdict(
        candidate_id=candidate.candidate_id,
        decision=Decision.ACCEPT,
        stages=stages,
        effect=0.25,
        interval=(0.1, 0.4),
        alpha=0.005,
    )
