"""A candidate with its evidence, as a document and as text for people."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import indent
from typing import TYPE_CHECKING

from evolve.cli.output import table
from evolve.cli.place import Place
from evolve.figures import count, interval, money, percent, points
from evolve.loop.on_record import whole_divergence
from evolve.proposers.sandbox import OUTSIDE, UNPROTECTED
from evolve.records import Candidate, Json, Pattern
from evolve.repository import harness_folder, open_repository
from evolve.store import CandidateEntry

if TYPE_CHECKING:
    from evolve.store.ledger import Ledger


def candidate_document(ledger: Ledger, entry: CandidateEntry) -> Json:
    """Return all that the ledger knows of a candidate; stages stand there also while the gate is at work."""
    candidate = entry.candidate
    patterns = ledger.patterns(candidate.run_id, candidate.number)
    found = next((p.pattern for p in patterns if p.pattern.pattern_id == candidate.proposal.pattern_id), None)
    return {
        **entry.model_dump(mode="json"),
        "stages": [stage.model_dump(mode="json") for stage in ledger.stages(candidate.candidate_id)],
        "pattern": None if found is None else found.model_dump(mode="json"),
        "divergence": None if entry.verdict is None else whole_divergence(entry.verdict.stages),
        "evidence_digest": None if entry.verdict is None else entry.verdict.evidence_digest,
    }


def candidate_diff(place: Place, candidate: Candidate) -> str:
    """Return a candidate's patch."""
    with open_repository(place.workspace.root) as repository:
        return repository.diff(candidate.parent_commit, candidate.commit, harness_folder(candidate.environment))


def candidate_text(document: Json, *, is_brief: bool = False) -> str:
    """Return a candidate's document as text.

    Args:
        is_brief: what a person decides by: without the numbers of each stage and the tasks that did not move.
    """
    candidate, proposal = document["candidate"], document["candidate"]["proposal"]
    standing = document["state"] if document["review"] == "none" else f"{document['state']}, {document['review']}"
    lines = [
        f"Candidate {candidate['candidate_id']}: {standing}",
        f"  {proposal['hypothesis']}",
        f"  layer {proposal['layer']}, by {candidate['proposer']}, "
        f"changes {', '.join(candidate['files']) or 'nothing'}",
        *_sandbox_lines(candidate["sandbox"]),
        *([f"  on your branch as {document['taken_commit'][:12]}"] if document["taken_commit"] else []),
        *([f"  under quarantine: {document['quarantine']}"] if document["quarantine"] else []),
        *(f"  not taken: {refused}" for refused in candidate["refused"]),
        "",
        *_pattern_lines(document),
        "",
        *_gate_lines(document),
        *_evidence_lines(document, is_brief=is_brief),
    ]
    return "\n".join(lines)


def _sandbox_lines(sandbox: str) -> list[str]:
    """Return how the coding agent was shut in; nothing where no program of a proposer's ran."""
    if sandbox == UNPROTECTED:
        return [f"  UNPROTECTED: the coding agent ran outside any sandbox. {OUTSIDE}"]
    return [f"  the coding agent was shut in: {sandbox}"] if sandbox else []


def pattern_text(pattern: Pattern) -> str:
    """Return a pattern as text, with its excerpt."""
    lines = [
        f"Pattern {pattern.pattern_id}: {pattern.title}",
        f"  class {pattern.failure_class.value}, signature {pattern.signature}",
        f"  {count(len(pattern.tasks), 'failed training task')} show it, "
        f"{count(pattern.counter_support, 'successful episode')} match too",
        f"  tasks: {', '.join(pattern.tasks)}",
        "",
        indent(pattern.excerpt.rstrip(), "  | ", lambda _: True),
    ]
    return "\n".join(lines)


def _pattern_lines(document: Json) -> list[str]:
    if document["pattern"] is None:
        return [f"Pattern {document['candidate']['proposal']['pattern_id']} is not on record."]
    return [pattern_text(Pattern.model_validate(document["pattern"]))]


def _gate_lines(document: Json) -> list[str]:
    rows = [
        (stage["stage"], stage["outcome"], reason)
        for stage in document["stages"]
        for reason in (stage["reasons"] or ["–"])
    ]
    if not rows:
        return ["The gate has not begun."]
    lines = [table(("STAGE", "OUTCOME", "WHY"), rows)]
    verdict = document["verdict"]
    if verdict is None:
        return [*lines, "", "The gate is at work; there is no verdict yet."]
    usage = verdict["usage"]
    tokens = usage["prompt_tokens"] + usage["completion_tokens"]
    gain = "no paired test" if verdict["effect"] is None else f"gain {points(verdict['effect'])} points per task"
    gain += f" (95%: {interval(verdict['interval'])})" if verdict["interval"] else ""
    share = "" if verdict["alpha"] is None else f", tested at a false-accept rate of {percent(verdict['alpha'], 2)}"
    return [
        *lines,
        "",
        f"Verdict: {verdict['decision']}, {gain}{share}",
        f"  {count(verdict['requests_asked'], 'request')} asked, {verdict['requests_reused']} reused; "
        f"{count(tokens, 'token')}, {money(usage['cost_usd'])}; evidence {document['evidence_digest'][:12]}",
    ]


def _evidence_lines(document: Json, *, is_brief: bool) -> list[str]:
    """Return what the verdict rests on: numbers of each stage, requests, predictions, and scores task by task."""
    numbers = {stage["stage"]: stage["numbers"] for stage in document["stages"]}
    test = numbers.get("paired_test", {})
    shown = [(name, key, value) for name, found in numbers.items() for key, value in flat_numbers(found)]
    rest = f"`evolve candidates show {document['candidate']['candidate_id']}` has every number."
    return [
        *(["", table(("STAGE", "NUMBER", "VALUE"), shown)] if shown and not is_brief else []),
        *_request_lines(document["divergence"]),
        *_prediction_lines(test.get("predictions")),
        *_task_lines(test.get("per_task", {}), is_brief=is_brief),
        *(["", rest] if is_brief else []),
    ]


def flat_numbers(numbers: Json, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield the numbers of a stage as dotted names and short texts; tables are left to those who draw them."""
    for key, value in numbers.items():
        if key in ("per_task", "predictions", "trial_rows"):
            continue
        if isinstance(value, dict):
            yield from flat_numbers(value, f"{prefix}{key}.")
        elif isinstance(value, list):
            yield f"{prefix}{key}", " to ".join(_short(each) for each in value)
        else:
            yield f"{prefix}{key}", _short(value)


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _request_lines(seen: Json | None) -> list[str]:
    if seen is None or not seen["requests"]:
        return []
    saved = (seen["tokens"] or 0) - (seen["tokens_asked"] or 0)
    return [
        "",
        f"Requests: {seen['requests_asked']} asked where a full re-run asks {seen['requests']} "
        f"({percent(seen['asked_share'], 0)}); {seen['episodes_diverged']} of {seen['episodes']} episodes diverged, "
        f"{count(saved, 'token')} saved",
    ]


def _prediction_lines(found: Json | None) -> list[str]:
    if found is None:
        return []
    hits, false = found["fixed_hits"], found["fixed_false"]
    return [
        "",
        f"Predictions: {len(hits)} of {len(found['fixed_predicted'])} foreseen fixes came true"
        + (f", not {', '.join(false)}" if false else "")
        + f"; {len(found['fixed_really'])} tasks were fixed in all",
        f"  broken: {', '.join(found['broken_really']) or 'none'}"
        + (f" (foreseen: {', '.join(found['broken_hits'])})" if found["broken_hits"] else ""),
    ]


def _task_lines(rows: Json, *, is_brief: bool) -> list[str]:
    if not rows:
        return []
    moved = {task: row for task, row in rows.items() if row[0] != row[1] or not is_brief}
    lines = sorted((old - new, task, old, new, pairs) for task, (old, new, pairs) in moved.items())
    cells = [(task, f"{old:.2f}", f"{new:.2f}", points(new - old), pairs) for _, task, old, new, pairs in lines]
    still = f"{count(len(rows) - len(moved), 'more task')} did not move"
    shown = table(("TRAINING TASK", "INCUMBENT", "CANDIDATE", "POINTS", "PAIRS"), cells)
    return ["", shown, *([still] if len(moved) < len(rows) else [])]
