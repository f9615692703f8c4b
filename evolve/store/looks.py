"""The part of the ledger about the held-out seal: freezes, and looks in a chain that shows tampering.

Each entry holds the digest of the one before it, and the ledger holds the digest of the last: an altered,
removed or inserted entry breaks the chain, and from then on every look is refused.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlmodel import Session, col, select

from evolve.errors import SealError
from evolve.records import FrozenHarness, Json, Look, Split, digest_of
from evolve.store.connection import Store
from evolve.store.entries import EpisodeEntry, EpisodeUse, LookEntry
from evolve.store.episodes import in_parts, put_episodes
from evolve.store.tables import EpisodeRow, FreezeRow, InfoRow, LookEpisodeRow, LookRow

_START = "start of the chain"
_END_KEY = "end_of_looks"


class Looks(Store):
    """Frozen harnesses and the looks made at held-out tasks with them."""

    def save_freeze(self, frozen: FrozenHarness) -> None:
        """Write down a frozen harness; the same again changes nothing.

        Raises:
            SealError: the name is taken by something else.
        """
        record = frozen.model_dump(mode="json")
        with self._writing() as session:
            row = session.get(FreezeRow, (frozen.environment, frozen.name))
            if row is None:
                session.add(
                    FreezeRow(environment=frozen.environment, name=frozen.name, harness=frozen.harness, record=record)
                )
            elif row.record != record:
                raise SealError(f"{frozen.name!r} is frozen already as something else; choose another name")

    def freezes(self, environment: str | None = None) -> list[FrozenHarness]:
        """Return the frozen harnesses, by environment and name."""
        query = select(FreezeRow).order_by(col(FreezeRow.environment), col(FreezeRow.name))
        if environment is not None:
            query = query.where(FreezeRow.environment == environment)
        with self._reading() as session:
            return [FrozenHarness.model_validate(row.record) for row in session.exec(query)]

    def open_look(self, *, environment: str, frozen_name: str, harness: str, model: str) -> Look:
        """Write down a look at the held-out tasks; it is on the disk when this returns.

        Raises:
            SealError: the harness is not frozen under this name here, or the chain of looks is broken.
        """
        with self._writing() as session:
            chain = _checked_chain(session, self._name)
            frozen = session.get(FreezeRow, (environment, frozen_name))
            if frozen is None or frozen.harness != harness:
                raise SealError(
                    f"this ledger knows no frozen harness {frozen_name!r} of {environment} with that digest"
                )
            earlier = [row for row in chain if row.kind == "open" and row.environment == environment]
            look = Look(
                look_id=f"look-{len(chain):04}-{digest_of([_end(chain), self._now()])[:8]}",
                environment=environment,
                frozen_name=frozen_name,
                harness=harness,
                model=model,
                opened_at=self._now(),
                number=1 + sum(row.harness == harness for row in earlier),
            )
            _append(session, chain, look, kind="open", at=look.opened_at)
            return look

    def close_look(self, look_id: str, result: Json) -> None:
        """Write down the result of a look; the same again changes nothing.

        Raises:
            SealError: there is no such look, or it was closed with another result.
        """
        with self._writing() as session:
            chain = _checked_chain(session, self._name)
            entry = next((entry for entry in _entries(chain) if entry.look.look_id == look_id), None)
            if entry is None:
                raise SealError(f"the ledger has no look {look_id!r}")
            if entry.result is None:
                _append(session, chain, entry.look, kind="close", at=self._now(), result=result)
            elif entry.result != result:
                raise SealError(f"look {look_id} was closed with another result")

    def looks(self, environment: str | None = None) -> list[LookEntry]:
        """Return all looks, or those at one environment, oldest first.

        Raises:
            SealError: the chain of looks is broken.
        """
        with self._reading() as session:
            entries = _entries(_checked_chain(session, self._name))
        return [entry for entry in entries if environment in (None, entry.look.environment)]

    def record_look_episodes(self, uses: Sequence[EpisodeUse], *, look_id: str) -> None:
        """Write down held-out episodes under the look they belong to; the same again changes nothing.

        Raises:
            SealError: the look is not open for this environment, or an episode is not held out; nothing is written.
        """
        with self._writing() as session:
            entries = {entry.look.look_id: entry for entry in _entries(_checked_chain(session, self._name))}
            entry = entries.get(look_id)
            for episode in (use.episode for use in uses):
                if entry is None or entry.result is not None or entry.look.environment != episode.environment:
                    raise SealError(f"there is no open look {look_id!r} at {episode.environment}")
                if episode.split is not Split.HELDOUT:
                    raise SealError(f"episode {episode.episode_id} is no held-out episode")
            for some in in_parts(uses):
                put_episodes(session, some, at=self._now())
            for name in dict.fromkeys(use.episode.episode_id for use in uses):
                key = {"look_id": look_id, "episode_id": name}
                if session.get(LookEpisodeRow, key) is None:
                    session.add(LookEpisodeRow(**key))

    def look_episodes(self, look_id: str) -> list[EpisodeEntry]:
        """Return the episodes of a look, by harness, task and trial."""
        query = select(EpisodeRow).join(LookEpisodeRow).where(LookEpisodeRow.look_id == look_id)
        query = query.order_by(col(EpisodeRow.harness), col(EpisodeRow.task_id), col(EpisodeRow.trial))
        with self._reading() as session:
            return [EpisodeEntry.model_validate(row.model_dump()) for row in session.exec(query)]


def _checked_chain(session: Session, ledger: str) -> list[LookRow]:
    chain = list(session.exec(select(LookRow).order_by(col(LookRow.position))))
    before = _START
    for position, row in enumerate(chain):
        if (row.position, row.previous, row.digest) != (position, before, _digest(row)):
            raise SealError(_broken(ledger, f"entry {position + 1} was altered, or one before it was removed"))
        before = row.digest
    end = session.get(InfoRow, _END_KEY)
    if (end.value if end else _START) != before:
        raise SealError(_broken(ledger, "entries at its end were removed or added by hand"))
    return chain


def _broken(ledger: str, what: str) -> str:
    return f"the looks in ledger {ledger} are not as evolve wrote them: {what}; restore the ledger from a copy"


def _append(
    session: Session, chain: list[LookRow], look: Look, *, kind: str, at: str, result: Json | None = None
) -> None:
    row = LookRow(
        position=len(chain),
        kind=kind,
        at=at,
        result=result,
        previous=_end(chain),
        digest="",
        **look.model_dump(exclude={"opened_at"}),
    )
    row.digest = _digest(row)
    session.add(row)
    session.merge(InfoRow(key=_END_KEY, value=row.digest))


def _digest(row: LookRow) -> str:
    return digest_of(row.model_dump(exclude={"digest"}))


def _end(chain: list[LookRow]) -> str:
    return chain[-1].digest if chain else _START


def _entries(chain: list[LookRow]) -> list[LookEntry]:
    closed = {row.look_id: row for row in chain if row.kind == "close"}
    return [
        LookEntry(
            look=Look(opened_at=row.at, **row.model_dump(include=set(Look.model_fields) - {"opened_at"})),
            closed_at=closed[row.look_id].at if row.look_id in closed else None,
            result=closed[row.look_id].result if row.look_id in closed else None,
        )
        for row in chain
        if row.kind == "open"
    ]
