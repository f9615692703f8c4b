"""The part of the ledger about A/A controls: the incumbent against itself."""

from __future__ import annotations

from sqlalchemy import inspect
from sqlmodel import col, select

from evolve.store.connection import Store
from evolve.store.entries import SelfCheckEntry
from evolve.store.tables import SelfCheckRow


class SelfChecks(Store):
    """A/A controls, each attempt once."""

    def save_self_check(self, check: SelfCheckEntry) -> SelfCheckEntry:
        """Write a control down and return what stands: the first result of an attempt is its result."""
        with self._writing() as session:
            row = session.get(SelfCheckRow, (check.run_id, check.number, check.attempt))
            if row is not None:
                return SelfCheckEntry.model_validate(row.record)
            key = check.model_dump(include={"run_id", "number", "attempt", "is_passed"})
            session.add(SelfCheckRow(**key, record=check.model_dump(mode="json")))
            return check

    def self_checks(self, run_id: str) -> list[SelfCheckEntry]:
        """Return the controls of a run in the order in which they were made."""
        query = select(SelfCheckRow).where(SelfCheckRow.run_id == run_id)
        query = query.order_by(col(SelfCheckRow.number), col(SelfCheckRow.attempt))
        with self._reading() as session:
            if not inspect(session.connection()).has_table(SelfCheckRow.__tablename__):
                return []  # a ledger from before there were controls, opened for reading
            return [SelfCheckEntry.model_validate(row.record) for row in session.exec(query)]
