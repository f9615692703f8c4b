"""The part of the ledger about rulers: what each run measures with."""

from __future__ import annotations

from sqlalchemy import inspect

from evolve.errors import StoreError
from evolve.records import Json, digest_of
from evolve.store.connection import Store
from evolve.store.entries import RulerEntry
from evolve.store.tables import RulerRow


class Rulers(Store):
    """One ruler a run, as it was when the run began."""

    def save_ruler(self, run_id: str, record: Json) -> RulerEntry:
        """Write a run's ruler down and return what stands: the first is the run's ruler."""
        with self._writing() as session:
            row = session.get(RulerRow, run_id)
            if row is None:
                row = RulerRow(run_id=run_id, digest=digest_of(record), record=record)
                session.add(row)
            return _entry(row)

    def ruler(self, run_id: str) -> RulerEntry | None:
        """Return a run's ruler; None for a run from before there were rulers.

        Raises:
            StoreError: it is not what was written down.
        """
        with self._reading() as session:
            if not inspect(session.connection()).has_table(RulerRow.__tablename__):
                return None  # a ledger of version 1, opened for reading
            row = session.get(RulerRow, run_id)
            return None if row is None else _entry(row)


def _entry(row: RulerRow) -> RulerEntry:
    if digest_of(row.record) != row.digest:
        raise StoreError(f"the ruler of run {row.run_id} is not what was written down; restore the ledger from a copy")
    return RulerEntry(digest=row.digest, record=row.record)
