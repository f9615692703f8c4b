"""The part of the ledger about episodes: where each lies, and which runs and arms used it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from sqlalchemy import BindParameter, Column, bindparam, insert, update
from sqlmodel import Session, col, select

from evolve.errors import SealError
from evolve.records import Episode, Json, Split
from evolve.store.connection import Store
from evolve.store.entries import EpisodeEntry, EpisodeUse, Purpose
from evolve.store.failures import no_run
from evolve.store.tables import EpisodeRow, Row, RunEpisodeRow

# What is done for each episode is done by fixed statements: objects and statements made anew cost five times as much.
_EPISODES, _USES, _RUNS = (Row.metadata.tables[name] for name in ("episodes", "run_episodes", "runs"))
_INSERT_EPISODE, _INSERT_USE = insert(_EPISODES), insert(_USES)
_SOME: BindParameter[Any] = bindparam("some", expanding=True)
_STATUSES = select(_EPISODES.c.episode_id, _EPISODES.c.status).where(_EPISODES.c.episode_id.in_(_SOME))
_HAS_RUN = select(_RUNS.c.run_id).where(_RUNS.c.run_id == bindparam("run_id"))
_KNOWN_USES = select(_USES.c.arm, _USES.c.episode_id, _USES.c.purpose).where(
    _USES.c.run_id == bindparam("run_id"), _USES.c.episode_id.in_(_SOME)
)
_AT_ONCE = 500

T = TypeVar("T")


class Episodes(Store):
    """Episodes and their use in runs."""

    def record_episodes(self, uses: Sequence[EpisodeUse], *, run_id: str) -> None:
        """Write down episodes and their use in a run; the same again changes nothing.

        An episode with status `error` is replaced by a later attempt; a finished one never is.

        Raises:
            SealError: an episode is a held-out one; nothing is written.
        """
        for use in uses:
            if use.episode.split is Split.HELDOUT:
                raise SealError(f"episode {use.episode.episode_id} is held out and cannot be recorded in a run")
        with self._writing() as session:
            connection = session.connection()
            if connection.execute(_HAS_RUN, {"run_id": run_id}).first() is None:
                raise no_run(run_id)
            for some in in_parts(uses):
                new = put_episodes(session, some, at=self._now())
                asked = {"run_id": run_id, "some": [use.episode.episode_id for use in some]}
                known = {tuple(row) for row in connection.execute(_KNOWN_USES, asked)}
                keys = dict.fromkeys((use.arm, use.episode.episode_id, use.purpose.value) for use in some)
                rows = [_use_row(run_id, key, new) for key in keys if key not in known]
                if rows:
                    connection.execute(_INSERT_USE, rows)

    def places(self, episode_ids: Sequence[str], *, with_errors: bool = False) -> dict[str, tuple[str, int]]:
        """Return the trace file and the byte at which it begins for those of the episodes that are on record.

        Args:
            with_errors: also those that infrastructure broke; without it only those that are done.
        """
        columns = (_EPISODES.c.trace_path, _EPISODES.c.trace_offset)
        rows = self._known(episode_ids, *columns, with_errors=with_errors)
        return {name: (path, offset) for name, path, offset in rows}

    def scores(self, episode_ids: Sequence[str]) -> dict[str, tuple[float | None, bool]]:
        """Return, for those of the episodes that are done, the score and whether it was a success."""
        rows = self._known(episode_ids, _EPISODES.c.score, _EPISODES.c.success)
        return {name: (score, bool(success)) for name, score, success in rows}

    def _known(self, episode_ids: Sequence[str], *columns: Column[Any], with_errors: bool = False) -> list[Any]:
        """Return columns of those of the episodes that are done, or also of the errored ones, the id first."""
        found: list[Any] = []
        wanted = select(_EPISODES.c.episode_id, *columns)
        if not with_errors:
            wanted = wanted.where(_EPISODES.c.status == "done")
        with self._reading() as session:
            for some in in_parts(episode_ids):
                found += session.connection().execute(wanted.where(_EPISODES.c.episode_id.in_(some)))
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


def in_parts(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """Yield the items in parts that fit one statement."""
    for start in range(0, len(items), _AT_ONCE):
        yield items[start : start + _AT_ONCE]


def put_episodes(session: Session, uses: Sequence[EpisodeUse], *, at: str) -> dict[str, EpisodeUse]:
    """Write a row for each episode of one part that has none or only a failed attempt; return those that had none.

    An episode that stands twice is treated as if its uses came one after the other: what is finished stays, and the
    first use is the one that is returned.
    """
    connection = session.connection()
    first: dict[str, EpisodeUse] = {}
    wanted: dict[str, EpisodeUse] = {}
    for use in uses:
        name = use.episode.episode_id
        first.setdefault(name, use)
        if name not in wanted or wanted[name].episode.status == "error":
            wanted[name] = use
    statuses = {row.episode_id: row.status for row in connection.execute(_STATUSES, {"some": list(wanted)})}
    new = [name for name in wanted if name not in statuses]
    if new:
        connection.execute(_INSERT_EPISODE, [_columns(wanted[name], at) for name in new])
    for name in (name for name, status in statuses.items() if status == "error"):
        is_it = _EPISODES.c.episode_id == name
        connection.execute(update(_EPISODES).where(is_it), _columns(wanted[name], at))
    return {name: first[name] for name in new}


_SAME_NAMES = sorted(set(EpisodeRow.model_fields) & set(Episode.model_fields) - {"score", "steps", "faults"})


def _columns(use: EpisodeUse, at: str) -> Json:
    episode = use.episode
    return {
        **{name: getattr(episode, name) for name in _SAME_NAMES},
        **episode.usage.model_dump(),
        "success": episode.is_success,
        "score": episode.score.value if episode.score else None,
        "steps": len(episode.steps),
        "faults": len(episode.faults),
        "trace_path": use.trace_path,
        "trace_offset": use.trace_offset,
        "recorded_at": at,
    }


def _use_row(run_id: str, key: tuple[str, str, str], new: Mapping[str, EpisodeUse]) -> Json:
    """Return the row of a use; the one that an episode was first played for is what its cost is counted to."""
    arm, name, purpose = key
    first = new.get(name)
    is_first = first is not None and (first.arm, first.purpose.value) == (arm, purpose)
    return {"run_id": run_id, "arm": arm, "episode_id": name, "purpose": purpose, "is_first": is_first}
