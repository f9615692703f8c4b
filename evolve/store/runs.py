"""The part of the ledger about runs: their configuration, patterns and cost."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import func, inspect
from sqlmodel import Session, col, select

from evolve.dotted import flatten
from evolve.errors import UserError
from evolve.records import Json, Pattern, Usage
from evolve.store.connection import Store
from evolve.store.entries import PatternEntry, RunEntry, RunStatus, Totals
from evolve.store.failures import no_run
from evolve.store.tables import CandidateRow, EpisodeRow, OptionsRow, PatternRow, RunEpisodeRow, RunRow

_SUMMED = ("prompt_tokens", "cached_tokens", "completion_tokens", "cost_usd")


class Runs(Store):
    """Runs and patterns."""

    def start_run(
        self,
        run_id: str,
        *,
        environment: str,
        model: str,
        base_commit: str,
        config: Json,
        options: Json | None = None,
    ) -> RunEntry:
        """Write a run down, or take up one that was cut off.

        Args:
            options: what it was told on its command line, before and now; None leaves what is on record.

        Raises:
            UserError: the run was started with another configuration; names what differs.
        """
        asked: Json = {"environment": environment, "model": model, "base_commit": base_commit, "config": config}
        with self._writing() as session:
            row = session.get(RunRow, run_id)
            if row is None:
                row = RunRow(run_id=run_id, started_at=self._now(), status=RunStatus.RUNNING, **asked)
            _require_same(row, asked)
            row.status, row.reason, row.finished_at = RunStatus.RUNNING, "", None
            session.add(row)
            if options is not None:
                session.flush()  # the options refer to the row
                session.merge(OptionsRow(run_id=run_id, options=options))
            return RunEntry.model_validate(row.model_dump())

    def require_config(self, run_id: str, config: Json) -> None:
        """Do nothing where a run has this configuration, or is not on record.

        Raises:
            UserError: it was started with another one; names what differs.
        """
        with self._reading() as session:
            row = session.get(RunRow, run_id)
            if row is not None:
                _require_same(row, {"config": config})

    def run_options(self, run_id: str) -> Json:
        """Return what a run was told on its command line so far; nothing where that is not on record."""
        with self._reading() as session:
            if not inspect(session.connection()).has_table(OptionsRow.__tablename__):
                return {}  # a ledger of version 2, opened for reading
            row = session.get(OptionsRow, run_id)
            return {} if row is None else row.options

    def run(self, run_id: str) -> RunEntry:
        """Return a run."""
        with self._reading() as session:
            return RunEntry.model_validate(_find_run(session, run_id).model_dump())

    def runs(self) -> list[RunEntry]:
        """Return all runs, newest first."""
        query = select(RunRow).order_by(col(RunRow.started_at).desc(), col(RunRow.run_id).desc())
        with self._reading() as session:
            return [RunEntry.model_validate(row.model_dump()) for row in session.exec(query)]

    def finish_run(self, run_id: str, status: RunStatus, reason: str = "") -> None:
        """Write down how a run ended."""
        with self._writing() as session:
            row = _find_run(session, run_id)
            row.status, row.reason, row.finished_at = status, reason, self._now()
            session.add(row)

    def save_patterns(self, run_id: str, iteration: int, patterns: Iterable[Pattern]) -> None:
        """Write down the patterns of an iteration; what it had before is replaced."""
        with self._writing() as session:
            _find_run(session, run_id)
            old = select(PatternRow).where(PatternRow.run_id == run_id, PatternRow.iteration == iteration)
            for row in session.exec(old).all():
                session.delete(row)
            session.flush()
            session.add_all(_pattern_row(run_id, iteration, pattern) for pattern in patterns)

    def patterns(self, run_id: str, iteration: int | None = None) -> list[PatternEntry]:
        """Return the patterns of a run or of one iteration, most supported first within an iteration."""
        query = select(PatternRow).where(PatternRow.run_id == run_id)
        if iteration is not None:
            query = query.where(PatternRow.iteration == iteration)
        query = query.order_by(col(PatternRow.iteration), col(PatternRow.support).desc(), col(PatternRow.pattern_id))
        with self._reading() as session:
            return [
                PatternEntry(run_id=run_id, iteration=row.iteration, pattern=Pattern.model_validate(row.record))
                for row in session.exec(query)
            ]

    def totals(self, run_id: str) -> Totals:
        """Add up what a run used."""
        used = select(RunEpisodeRow.episode_id).where(RunEpisodeRow.run_id == run_id)
        first = used.where(col(RunEpisodeRow.is_first))
        with self._reading() as session:
            _find_run(session, run_id)
            episodes, requests = session.exec(
                select(func.count(), func.sum(EpisodeRow.requests)).where(col(EpisodeRow.episode_id).in_(used))
            ).one()
            asked, *sums = session.execute(
                select(func.sum(EpisodeRow.requests_asked), *(func.sum(getattr(EpisodeRow, name)) for name in _SUMMED))
                .select_from(EpisodeRow)
                .where(col(EpisodeRow.episode_id).in_(first))
            ).one()
            records = session.exec(select(CandidateRow.record).where(CandidateRow.run_id == run_id)).all()
        *tokens, cost = sums
        return Totals(
            episodes=episodes,
            requests=requests or 0,
            requests_asked=asked or 0,
            usage=Usage(**dict(zip(_SUMMED, [*(count or 0 for count in tokens), cost], strict=True))),
            proposer_usage=Usage.total(Usage.model_validate(record["usage"]) for record in records),
        )


def _pattern_row(run_id: str, iteration: int, pattern: Pattern) -> PatternRow:
    return PatternRow(
        run_id=run_id,
        iteration=iteration,
        pattern_id=pattern.pattern_id,
        failure_class=pattern.failure_class,
        signature=pattern.signature,
        support=len(pattern.tasks),
        counter_support=pattern.counter_support,
        record=pattern.model_dump(mode="json"),
    )


def _find_run(session: Session, run_id: str) -> RunRow:
    row = session.get(RunRow, run_id)
    if row is None:
        raise no_run(run_id)
    return row


def _require_same(row: RunRow, asked: Json) -> None:
    """Refuse to mix configurations in one run."""
    stored = row.model_dump(include=set(asked))
    words = {"model": "fingerprint of the model", "base_commit": "base commit"}
    flat_stored, flat_asked = (
        {**flatten(value["config"]), **{words[name]: value[name] for name in words if name in value}}
        for value in (stored, asked)
    )
    names = sorted(flat_stored.keys() | flat_asked.keys())
    differing = [name for name in names if flat_stored.get(name) != flat_asked.get(name)]
    if differing:
        what = ", ".join(f"{name} (was {flat_stored.get(name)!r}, now {flat_asked.get(name)!r})" for name in differing)
        raise UserError(f"run {row.run_id} was started with other settings: {what}; restore them or start a new run")
