"""The part of the ledger about commitments: which held-out split it is, before anybody has looked at it."""

from __future__ import annotations

import shlex

from sqlalchemy import inspect
from sqlmodel import Session, col, select

from evolve.dotted import assignments
from evolve.errors import SealError
from evolve.records import Json, digest_of
from evolve.store.connection import Store
from evolve.store.entries import CommitmentEntry
from evolve.store.tables import CommitmentRow, FreezeRow, LookRow


class Commitments(Store):
    """Digests of held-out splits. Which tasks are listed may be chosen until the first look, and not after it."""

    def commit_heldout(self, environment: str, options: Json, digest: str) -> CommitmentEntry:
        """Write down the digest of a held-out split, or compare it with what is written down.

        Args:
            options: of the environment; they decide which of its held-out tasks are listed.

        Raises:
            SealError: with these options it was another split, or another one was looked at already.
        """
        with self._writing() as session:
            row = _compared(session, environment, options, digest)
            if row is None:
                key = _key(environment, options)
                row = CommitmentRow(**key, options=options, digest=digest, made_at=self._now())
                session.add(row)
            return _entry(row)

    def require_heldout(self, environment: str, options: Json, digest: str) -> None:
        """Compare a held-out split as `commit_heldout` does, and write nothing.

        Raises:
            SealError: as `commit_heldout`.
        """
        with self._reading() as session:
            if inspect(session.connection()).has_table(CommitmentRow.__tablename__):
                _compared(session, environment, options, digest)

    def commitments(self, environment: str) -> list[CommitmentEntry]:
        """Return the commitments for an environment, oldest first."""
        query = select(CommitmentRow).where(CommitmentRow.environment == environment)
        query = query.order_by(col(CommitmentRow.made_at), col(CommitmentRow.options_digest))
        with self._reading() as session:
            if not inspect(session.connection()).has_table(CommitmentRow.__tablename__):
                return []  # a ledger of version 1, opened for reading
            return [_entry(row) for row in session.exec(query)]


def _key(environment: str, options: Json) -> dict[str, str]:
    return {"environment": environment, "options_digest": digest_of(options)}


def _compared(session: Session, environment: str, options: Json, digest: str) -> CommitmentRow | None:
    """Return the commitment to the split that these options list, or None where there is none."""
    row = session.get(CommitmentRow, _key(environment, options))
    _refuse_second_choice(session, environment, options, digest, is_new=row is None)
    if row is not None and row.digest != digest:
        raise SealError(
            f"the held-out tasks of {environment} are not those that this workspace committed itself to on "
            f"{row.made_at}: they have digest {digest}, the commitment is {row.digest}; restore data and code"
        )
    return row


def _refuse_second_choice(session: Session, environment: str, options: Json, digest: str, *, is_new: bool) -> None:
    """Refuse another split than the one looked at, also one that was committed to before the look.

    A frozen version says which split it was looked at with; one frozen without that data lets the known splits be.
    """
    made = session.exec(select(CommitmentRow).where(CommitmentRow.environment == environment)).all()
    names = set(session.exec(select(LookRow.frozen_name).where(LookRow.environment == environment)))
    frozen = session.exec(select(FreezeRow).where(FreezeRow.environment == environment, col(FreezeRow.name).in_(names)))
    seen = {row.record["manifest"].get("heldout_commitment") for row in frozen} - {None}
    if made and names and (digest not in seen if seen else is_new):
        known = ", or ".join(_told(environment, row.options) for row in made if not seen or row.digest in seen)
        raise SealError(
            f"the held-out tasks of {environment} were looked at already, with {known}; they cannot be chosen anew "
            f"with {_told(environment, options)}. Restore the options, or begin a new workspace"
        )


def _told(environment: str, options: Json) -> str:
    """Return the options of an environment as --set takes them from a shell."""
    told = assignments({"environments": {environment: options}}) if options else ()
    return " ".join(map(shlex.quote, told)) or "no options"


def _entry(row: CommitmentRow) -> CommitmentEntry:
    return CommitmentEntry.model_validate(row.model_dump(exclude={"options_digest"}))
