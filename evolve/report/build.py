"""Builds the report of one run out of ledger, repository and traces. It reads; it writes nothing and asks no model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from evolve.classify.label import class_counts, label_failure
from evolve.environments.installed import make_environment
from evolve.errors import ConfigError, RepositoryError
from evolve.figures import parse_time
from evolve.loop.on_record import budget_after, whole_divergence
from evolve.models.recorded import RecordedModel, recording_file
from evolve.predictions import PredictionScore
from evolve.rates import wilson
from evolve.records import Evaluation, Json, ModelFingerprint, Split, StageResult, Tool
from evolve.report.document import (
    Baseline,
    BudgetFacts,
    CandidateReport,
    Divergence,
    IsolationFacts,
    IterationReport,
    LookReport,
    ModelFacts,
    PatternLine,
    Report,
    RunFacts,
    RunTotals,
    TaskLine,
)
from evolve.report.source import Source
from evolve.report.units import unit_lines
from evolve.repository import Repository, harness_folder
from evolve.store import CandidateEntry, EpisodeEntry, LookEntry, RunEntry
from evolve.traces import Traces

if TYPE_CHECKING:
    from evolve.store.ledger import Ledger

MOST_PATTERNS = 8
NO_RULES = "none"
UNPROTECTED = "rlimits"


def build(
    ledger: Ledger, repository: Repository, traces: Traces, run_id: str, *, tools: Sequence[Tool] | None = None
) -> Report:
    """Return the report of a run, finished or not.

    Args:
        tools: what the environment offers; None asks the environment, which must be installed.

    Raises:
        UserError: there is no such run, or its environment is not installed.
        StoreError: a trace that the ledger names does not read.
    """
    run = ledger.run(run_id)
    source = Source(ledger, repository, traces, run, _offered_tools(run) if tools is None else tools)
    looks = tuple(_look(entry) for entry in ledger.looks(run.environment))
    return Report(
        run=_run_facts(run),
        model=_model_facts(run, looks),
        isolation=_isolation(source.entries, source.candidates.values()),
        totals=_totals(source),
        iterations=tuple(_iteration(source, number) for number in source.numbers),
        units=unit_lines(source.scored_episodes(), source.rivals),
        budget=_budget(run, source.candidates.values()),
        self_checks=tuple(ledger.self_checks(run_id)),
        guard_uses=ledger.guard_uses(run.environment),
        ruler=ruler.digest if (ruler := ledger.ruler(run_id)) else None,
        commitments=tuple(ledger.commitments(run.environment)),
        freezes=tuple(ledger.freezes(run.environment)),
        looks=looks,
    )


def _iteration(source: Source, number: int) -> IterationReport:
    digest = source.incumbent_digest(number)
    entries = [entry for entry in source.baseline_entries if entry.harness == digest]
    failed = source.episodes_of(entry for entry in entries if entry.status == "done" and not entry.success)
    patterns = source.ledger.patterns(source.run.run_id, number)
    return IterationReport(
        number=number,
        baseline=_baseline(entries),
        failure_classes=class_counts([label_failure(episode, source.tools) for episode in failed]),
        patterns=tuple(
            PatternLine(
                pattern_id=entry.pattern.pattern_id,
                title=entry.pattern.title,
                failure_class=entry.pattern.failure_class,
                support=len(entry.pattern.tasks),
                counter_support=entry.pattern.counter_support,
                excerpt=entry.pattern.excerpt,
            )
            for entry in patterns[:MOST_PATTERNS]
        ),
        pattern_count=len(patterns),
        candidate=_candidate(source, source.candidates[number]) if number in source.candidates else None,
    )


def _baseline(entries: Sequence[EpisodeEntry]) -> Baseline:
    scored = [entry for entry in entries if entry.score is not None]
    solved = sum(entry.success for entry in scored)
    return Baseline(
        tasks=len(scored),
        solved=solved,
        errors=len(entries) - len(scored),
        rate=round(solved / len(scored), 6) if scored else 0.0,
        ci95=wilson(solved, len(scored)),
    )


def _candidate(source: Source, entry: CandidateEntry) -> CandidateReport:
    candidate, verdict = entry.candidate, entry.verdict
    stages = tuple(verdict.stages if verdict else source.ledger.stages(candidate.candidate_id))
    test: Json = next((stage.numbers for stage in stages if stage.stage == "paired_test"), {})
    return CandidateReport(
        candidate_id=candidate.candidate_id,
        number=candidate.number,
        proposer=candidate.proposer,
        hypothesis=candidate.proposal.hypothesis,
        layer=candidate.proposal.layer,
        pattern_id=candidate.proposal.pattern_id,
        files=candidate.files,
        diff=_diff(source, entry),
        state=entry.state,
        review=entry.review,
        decision=verdict.decision if verdict else None,
        reasons=stages[-1].reasons if stages else (),
        effect=verdict.effect if verdict else None,
        interval=verdict.interval if verdict else None,
        alpha=verdict.alpha if verdict else None,
        stages=tuple(_without_tables(stage) for stage in stages),
        divergence=_divergence(stages),
        predictions=PredictionScore.model_validate(test["predictions"]) if "predictions" in test else None,
        tasks=_task_lines(test.get("per_task", {}), source.training_tasks),
        requests_asked=verdict.requests_asked if verdict else 0,
        requests_reused=verdict.requests_reused if verdict else 0,
        usage=verdict.usage if verdict else candidate.usage,
        evidence_digest=verdict.evidence_digest if verdict else None,
        taken_commit=entry.taken_commit,
    )


def _diff(source: Source, entry: CandidateEntry) -> str:
    """Return the patch; a clone without the candidates' refs has lost it, and the rest of the report stands."""
    candidate = entry.candidate
    try:
        folder = harness_folder(candidate.environment)
        return source.repository.diff(candidate.parent_commit, candidate.commit, folder)
    except RepositoryError:
        return ""


def _without_tables(stage: StageResult) -> StageResult:
    """Return a stage with the numbers that the report does not give elsewhere."""
    shown = {key: value for key, value in stage.numbers.items() if key not in ("per_task", "predictions", "trial_rows")}
    return stage.model_copy(update={"numbers": shown})


def _divergence(stages: Iterable[StageResult]) -> Divergence | None:
    seen = whole_divergence(stages)
    return None if seen is None else Divergence.model_validate({k: v for k, v in seen.items() if v is not None})


def _task_lines(table: Json, training_tasks: frozenset[str]) -> tuple[TaskLine, ...]:
    lines = (
        TaskLine(task_id=task, incumbent=row[0], candidate=row[1], pairs=row[2])
        for task, row in table.items()
        if task in training_tasks
    )
    return tuple(sorted(lines, key=lambda line: (-line.change, line.task_id)))


def _totals(source: Source) -> RunTotals:
    totals = source.ledger.totals(source.run.run_id)
    return RunTotals(
        episodes=totals.episodes,
        errors=sum(entry.status == "error" for entry in source.entries),
        requests=totals.requests,
        requests_asked=totals.requests_asked,
        requests_reused=totals.requests - totals.requests_asked,
        usage=totals.usage,
        proposer_usage=totals.proposer_usage,
        episode_wall_s=round(sum(entry.wall_s for entry in source.entries), 3),
    )


def _run_facts(run: RunEntry) -> RunFacts:
    return RunFacts(
        run_id=run.run_id,
        environment=run.environment,
        status=run.status,
        reason=run.reason,
        started_at=run.started_at,
        finished_at=run.finished_at,
        wall_s=_seconds(run.started_at, run.finished_at),
        base_commit=run.base_commit,
        proposer=run.config["proposer"]["kind"],
        policy=run.config["gate"]["policy"],
        config=run.config,
    )


def _seconds(start: str, end: str | None) -> float | None:
    if end is None:
        return None
    return (parse_time(end) - parse_time(start)).total_seconds()


def _model_facts(run: RunEntry, looks: Sequence[LookReport]) -> ModelFacts:
    settings = run.config["model"]
    fingerprint = _fingerprint(run, looks)
    return ModelFacts(
        digest=run.model,
        model_id=fingerprint.model_id if fingerprint else settings.get("id", ""),
        kind=settings["kind"],
        is_recorded=settings["kind"] == "recorded",
        fingerprint=fingerprint,
    )


def _fingerprint(run: RunEntry, looks: Sequence[LookReport]) -> ModelFingerprint | None:
    """Return the fingerprint behind the run's digest, from a look with the same model or from the recording."""
    known = [look.evaluation.model for look in looks if look.evaluation is not None]
    path = run.config["model"].get("recording")
    if run.config["model"]["kind"] == "recorded" and path:
        with suppress(ConfigError):  # it was removed since
            known.append(RecordedModel(recording_file(Path(path))).fingerprint)
    return next((fingerprint for fingerprint in known if fingerprint.digest == run.model), None)


def _isolation(entries: Sequence[EpisodeEntry], candidates: Iterable[CandidateEntry]) -> IsolationFacts:
    tiers = sorted({entry.isolation for entry in entries} - {NO_RULES})
    proposers = sorted({entry.candidate.sandbox for entry in candidates} - {""})
    return IsolationFacts(tiers=tuple(tiers), is_unprotected=UNPROTECTED in tiers, proposers=tuple(proposers))


def _budget(run: RunEntry, candidates: Iterable[CandidateEntry]) -> BudgetFacts:
    budget = budget_after(run.config["gate"]["policy"], candidates)
    return BudgetFacts(
        policy=budget.policy,
        total=budget.total,
        left=budget.left,
        next_alpha=budget.next_alpha,
        sentence=str(budget),
    )


def _look(entry: LookEntry) -> LookReport:
    result = None if entry.result is None else Evaluation.model_validate(entry.result)
    return LookReport(look=entry.look, closed_at=entry.closed_at, evaluation=result)


def _offered_tools(run: RunEntry) -> tuple[Tool, ...]:
    environment = make_environment(run.environment, run.config["environments"].get(run.environment, {}))
    session = environment.open(environment.tasks(Split.TRAIN)[0], 0)
    try:
        return tuple(session.tools)
    finally:
        session.close()
