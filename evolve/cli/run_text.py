"""A run as a document and as text for people."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from evolve.cli.output import table
from evolve.cli.place import Place
from evolve.figures import count, grouped, interval, moment, money, points
from evolve.loop.beginning import FREE_TO_CHANGE
from evolve.loop.on_record import budget_after, whole_divergence
from evolve.records import Json, Verdict
from evolve.store import CandidateEntry, Review, RunEntry, RunStatus

if TYPE_CHECKING:
    from evolve.store.ledger import Ledger

CANDIDATE_HEAD = ("CANDIDATE", "GATE", "REVIEW", "GAIN", "95% INTERVAL", "ASKED OF", "REQUESTS", "LAYER", "HYPOTHESIS")


def was_killed(entry: RunEntry, played: Collection[str | None]) -> bool:
    """Tell whether a run that goes on by the ledger does not.

    Args:
        played: what `run_under_way` said before the entry was read and after.
    """
    return entry.status is RunStatus.RUNNING and entry.run_id not in played


def run_row(entry: RunEntry, played: Collection[str | None]) -> Json:
    """Return what the ledger says of a run itself; `played` as for `was_killed`."""
    return {**entry.model_dump(mode="json"), "is_interrupted": was_killed(entry, played)}


def runs_table(rows: list[Json], candidates: Mapping[str, int]) -> str:
    """Return runs as a table, with the number of each one's candidates; of a reason the first sentence."""
    return table(
        ("RUN", "ENVIRONMENT", "STATUS", "CANDIDATES", "STARTED", "ENDED BECAUSE"),
        [
            (
                row["run_id"],
                row["environment"],
                status(row),
                candidates[row["run_id"]],
                moment(row["started_at"]),
                _reason(row) or None,
            )
            for row in rows
        ],
    )


def run_document(ledger: Ledger, entry: RunEntry, played: Collection[str | None] = ()) -> Json:
    """Return all that the ledger knows of a run, without its episodes; `played` as for `was_killed`."""
    patterns = ledger.patterns(entry.run_id)
    latest = max((found.iteration for found in patterns), default=0)
    return {
        **run_row(entry, played),
        "totals": ledger.totals(entry.run_id).model_dump(mode="json"),
        "candidates": [candidate_row(found) for found in ledger.candidates(entry.run_id)],
        "patterns": sum(found.iteration == latest for found in patterns),
        "budget": budget_document(ledger, entry),
        "ruler": found.digest if (found := ledger.ruler(entry.run_id)) else None,
        "heldout_commitments": [made.model_dump(mode="json") for made in ledger.commitments(entry.environment)],
        "self_checks": [check.model_dump(mode="json") for check in ledger.self_checks(entry.run_id)],
    }


def budget_document(ledger: Ledger, entry: RunEntry) -> Json:
    """Return the error budget of a run as its candidates have left it."""
    budget = budget_after(entry.config["gate"]["policy"], ledger.candidates(entry.run_id))
    return {
        "policy": budget.policy.value,
        "total": budget.total,
        "left": budget.left,
        "next_alpha": budget.next_alpha,
        "sentence": str(budget),
    }


def candidate_row(entry: CandidateEntry) -> Json:
    """Return a candidate's standing in a few values."""
    verdict = entry.verdict
    return {
        "candidate_id": entry.candidate.candidate_id,
        "run_id": entry.candidate.run_id,
        "number": entry.candidate.number,
        "environment": entry.candidate.environment,
        "state": entry.state.value,
        "review": entry.review.value,
        "effect": verdict.effect if verdict else None,
        "interval": verdict.interval if verdict else None,
        **_requests(verdict),
        "layer": entry.candidate.proposal.layer.value,
        "pattern_id": entry.candidate.proposal.pattern_id,
        "proposer": entry.candidate.proposer,
        "hypothesis": entry.candidate.proposal.hypothesis,
        "taken_commit": entry.taken_commit,
    }


def _requests(verdict: Verdict | None) -> Json:
    """Return what the candidate's episodes asked for, as the verdict counts it: also where no test was reached."""
    if verdict is None:
        return dict.fromkeys(("requests", "requests_asked", "asked_share", "tokens", "tokens_asked"))
    seen = whole_divergence(verdict.stages)
    requests = verdict.requests_asked + verdict.requests_reused
    return {
        "requests": requests,
        "requests_asked": verdict.requests_asked,
        "asked_share": round(verdict.requests_asked / requests, 4) if requests else 0.0,
        "tokens": verdict.usage.prompt_tokens + verdict.usage.completion_tokens,
        "tokens_asked": seen["tokens_asked"] if seen else None,
    }


def candidate_table(rows: list[Json]) -> str:
    """Return candidates as a table; gains are in points per task."""
    return table(
        CANDIDATE_HEAD,
        [
            (
                row["candidate_id"],
                row["state"],
                row["review"] if row["review"] != Review.NONE else None,
                points(row["effect"]),
                interval(row["interval"]),
                row["requests_asked"],
                row["requests"],
                row["layer"],
                row["hypothesis"],
            )
            for row in rows
        ],
    )


def _answered(document: Json) -> str:
    """Say who answered what was not on record."""
    return "answered by a recording" if document["config"]["model"]["kind"] == "recorded" else "asked of the model"


def run_text(place: Place, document: Json) -> str:
    """Return a run's document as text, and what a person would do now."""
    totals, usage = document["totals"], document["totals"]["usage"]
    tokens = usage["prompt_tokens"] + usage["completion_tokens"]
    lines = [
        f"Run {document['run_id']} on {document['environment']}: {_status(document)}",
        f"  started {moment(document['started_at'])}, ended {moment(document['finished_at'])}",
        f"  {count(totals['episodes'], 'episode')}, {count(totals['requests'], 'request')} "
        f"({grouped(totals['requests_asked'])} {_answered(document)}), {count(tokens, 'token')}, "
        f"{money(usage['cost_usd'])}",
        f"  {count(document['patterns'], 'pattern')} in the last iteration",
        f"  error budget: {document['budget']['sentence']}",
        *(f"  held-out commitment: {made['digest']}" for made in document["heldout_commitments"]),
        *(f"  A/A control: {' '.join(check['reasons'])}" for check in document["self_checks"]),
    ]
    if document["candidates"]:
        lines += ["", candidate_table(document["candidates"])]
    return "\n".join([*lines, *_next(place, document)])


def _status(document: Json) -> str:
    """Return how a run stands, and the first sentence of why; standard error and the document have all of it."""
    reason = _reason(document)
    return f"{status(document)} ({reason})" if reason else status(document)


def _reason(row: Json) -> str:
    return "" if row["is_interrupted"] else str(row["reason"]).partition(". ")[0]


def status(row: Json) -> str:
    """Return how a run stands in a word."""
    return "interrupted" if row["is_interrupted"] else str(row["status"])


def _next(place: Place, document: Json) -> list[str]:
    if any(row["review"] == Review.WAITING for row in document["candidates"]):
        return ["", f"Next: `{place.then('review')}` shows each accepted candidate and its evidence."]
    if document["status"] != RunStatus.DONE:
        go_on = f"`{place.then('run', '--resume', document['run_id'])}` goes on as it was told"
        return ["", f"Next: {go_on}; {', '.join(FREE_TO_CHANGE)} may be told anew, all else asks for a new run."]
    return []
