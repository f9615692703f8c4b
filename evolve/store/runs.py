"""The part of the ledger about runs: their configuration, episodes, patterns and cost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Column, bindparam, func, insert, update
from sqlmodel import Session, col, select

from evolve.errors import SealError, UserError
from evolve.records import Episode, Json, Pattern, Split, Usage
from evolve.store.connection import Store
from evolve.store.entries import EpisodeEntry, PatternEntry, Purpose, RunEntry, RunStatus, Totals
from evolve.store.tables import CandidateRow, EpisodeRow, PatternRow, Row, RunEpisodeRow, RunRow

# What is done for each episode is done by fixed statements: objects and statements made anew cost five times as much.
_EPISODES, _USES, _RUNS = (Row.metadata.tables[name] for name in ("episodes", "run_episodes", "runs"))
_INSERT_EPISODE, _INSERT_USE = insert(_EPISODES), insert(_USES)
_STATUS = select(_EPISODES.c.status).where(_EPISODES.c.episode_id == bindparam("episode_id"))
_HAS_RUN = select(_RUNS.c.run_id).where(_RUNS.c.run_id == bindparam("run_id"))
_HAS_USE = select(_USES.c.run_id).where(*(column == bindparam(column.name) for column in _USES.primary_key))
_AT_ONCE = 500

_SUMMED = ("prompt_tokens", "cached_tokens", "completion_tokens", "cost_usd")


class Runs(Store):
    """Runs, episodes and patterns."""

    def start_run(self, run_id: str, *, environment: str, model: str, base_commit: str, config: Json) -> RunEntry:
        """Write a run down, or take up one that was cut off.

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
            return RunEntry.model_validate(row.model_dump())

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

    def record_episode(
        self, episode: Episode, trace_path: str, trace_offset: int, *, run_id: str, arm: str, purpose: Purpose
    ) -> None:
        """Write down an episode and its use in a run; the same again changes nothing.

        An episode with status `error` is replaced by a later attempt; a finished one never is.

        Args:
            arm: the candidate's id, or "" for the incumbent.

        Raises:
            SealError: the episode is a held-out one.
        """
        if episode.split is Split.HELDOUT:
            raise SealError(f"episode {episode.episode_id} is held out and cannot be recorded in a run")
        key = {"run_id": run_id, "arm": arm, "episode_id": episode.episode_id, "purpose": purpose.value}
        with self._writing() as session:
            if session.connection().execute(_HAS_RUN, {"run_id": run_id}).first() is None:
                raise _no_run(run_id)
            is_first = put_episode(session, episode, trace_path, trace_offset, at=self._now())
            if session.connection().execute(_HAS_USE, key).first() is None:
                session.connection().execute(_INSERT_USE, key | {"is_first": is_first})

    def places(self, episode_ids: Sequence[str]) -> dict[str, tuple[str, int]]:
        """Return, for those of the episodes that are done, the trace file and the byte at which the episode begins."""
        rows = self._done(episode_ids, _EPISODES.c.trace_path, _EPISODES.c.trace_offset)
        return {name: (path, offset) for name, path, offset in rows}

    def scores(self, episode_ids: Sequence[str]) -> dict[str, tuple[float | None, bool]]:
        """Return, for those of the episodes that are done, the score and whether it was a success."""
        rows = self._done(episode_ids, _EPISODES.c.score, _EPISODES.c.success)
        return {name: (score, bool(success)) for name, score, success in rows}

    def _done(self, episode_ids: Sequence[str], *columns: Column[Any]) -> list[Any]:
        """Return columns of those of the episodes that are done, the id first."""
        found: list[Any] = []
        wanted = select(_EPISODES.c.episode_id, *columns)
        with self._reading() as session:
            for start in range(0, len(episode_ids), _AT_ONCE):
                some = _EPISODES.c.episode_id.in_(episode_ids[start : start + _AT_ONCE])
                found += session.connection().execute(wanted.where(some, _EPISODES.c.status == "done"))
        return found

    def episode_row(self, episode_id: str) -> EpisodeEntry | None:
        """Return what is known of an episode, or None."""
        with self._reading() as session:
            row = session.get(EpisodeRow, episode_id)
            return EpisodeEntry.model_validate(row.model_dump()) if row else None

    def episodes(self, run_id: str, *, arm: str | None = None, purpose: Purpose | None = None) -> list[EpisodeEntry]:
        """Return the episodes that a run used, each once, by task and trial; None asks for all."""
        query = select(EpisodeRow).join(RunEpisodeRow).where(RunEpisodeRow.run_id == run_id).distinct()
        if arm is not None:
            query = query.where(RunEpisodeRow.arm == arm)
        if purpose is not None:
            query = query.where(RunEpisodeRow.purpose == purpose.value)
        query = query.order_by(col(EpisodeRow.task_id), col(EpisodeRow.trial), col(EpisodeRow.episode_id))
        with self._reading() as session:
            return [EpisodeEntry.model_validate(row.model_dump()) for row in session.exec(query)]

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
            proposer_usage=sum((Usage.model_validate(record["usage"]) for record in records), Usage()),
        )


def put_episode(session: Session, episode: Episode, trace_path: str, trace_offset: int, *, at: str) -> bool:
    """Write an episode's row where there is none or only a failed attempt; return whether there was none."""
    connection = session.connection()
    status = connection.execute(_STATUS, {"episode_id": episode.episode_id}).scalar()
    if status in (None, "error"):
        values = _columns(episode, trace_path, trace_offset, at)
        is_it = _EPISODES.c.episode_id == episode.episode_id
        connection.execute(_INSERT_EPISODE, values) if status is None else connection.execute(
            update(_EPISODES).where(is_it), values
        )
    return status is None


_SAME_NAMES = sorted(set(EpisodeRow.model_fields) & set(Episode.model_fields) - {"score", "steps", "faults"})


def _columns(episode: Episode, trace_path: str, trace_offset: int, at: str) -> Json:
    return {
        **{name: getattr(episode, name) for name in _SAME_NAMES},
        **episode.usage.model_dump(),
        "success": episode.is_success,
        "score": episode.score.value if episode.score else None,
        "steps": len(episode.steps),
        "faults": len(episode.faults),
        "trace_path": trace_path,
        "trace_offset": trace_offset,
        "recorded_at": at,
    }


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
        raise _no_run(run_id)
    return row


def _no_run(run_id: str) -> UserError:
    return UserError(f"the ledger has no run {run_id!r}; `evolve runs list` shows those it has")


def _require_same(row: RunRow, asked: Json) -> None:
    """Refuse to mix configurations in one run."""
    stored = row.model_dump(include=set(asked))
    flat_stored, flat_asked = (
        {**value["config"], "fingerprint of the model": value["model"], "base commit": value["base_commit"]}
        for value in (stored, asked)
    )
    names = sorted(flat_stored.keys() | flat_asked.keys())
    differing = [name for name in names if flat_stored.get(name) != flat_asked.get(name)]
    if differing:
        what = ", ".join(f"{name} (was {flat_stored.get(name)!r})" for name in differing)
        raise UserError(f"run {row.run_id} was started with other settings: {what}; restore them or start a new run")
