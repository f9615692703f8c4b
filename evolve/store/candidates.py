"""The part of the ledger about candidates: what the gate found, what a person did, what was predicted."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import inspect
from sqlmodel import Session, col, func, select

from evolve.errors import StoreError, UserError
from evolve.records import Candidate, Decision, StageResult, Verdict
from evolve.store.connection import Store
from evolve.store.entries import CandidateEntry, CandidateState, Prediction, Review
from evolve.store.tables import CandidateRow, GuardUseRow, PredictionRow, QuarantineRow, StageRow, VerdictRow

_STATE_AFTER = {
    Decision.ACCEPT: CandidateState.ACCEPTED,
    Decision.REJECT: CandidateState.REJECTED,
    Decision.CANNOT_TELL: CandidateState.CANNOT_TELL,
}


class Candidates(Store):
    """Candidates, stage results, verdicts, reviews, predictions and uses of the guard tasks."""

    def add_candidate(self, candidate: Candidate) -> None:
        """Write down a candidate and its predictions; the same again changes nothing.

        Raises:
            StoreError: another candidate has this id.
        """
        record = candidate.model_dump(mode="json")
        with self._writing() as session:
            row = session.get(CandidateRow, candidate.candidate_id)
            if row is None:
                session.add(_candidate_row(candidate))
                session.flush()
                session.add_all(_prediction_rows(candidate))
            elif row.record != record:
                raise StoreError(f"candidate {candidate.candidate_id} is in the ledger already, with another content")

    def candidate(self, candidate_id: str) -> CandidateEntry:
        """Return a candidate and where it stands."""
        with self._reading() as session:
            return _entry(session, _find(session, candidate_id))

    def candidates(self, run_id: str | None = None) -> list[CandidateEntry]:
        """Return the candidates of a run, or all, in the order in which they were numbered."""
        query = select(CandidateRow).order_by(col(CandidateRow.run_id), col(CandidateRow.number))
        if run_id is not None:
            query = query.where(CandidateRow.run_id == run_id)
        with self._reading() as session:
            return [_entry(session, row) for row in session.exec(query)]

    def mark_testing(self, candidate_id: str) -> None:
        """Write down that the gate has begun; after its verdict this changes nothing."""
        with self._writing() as session:
            row = _find(session, candidate_id)
            if row.state == CandidateState.PROPOSED:
                row.state = CandidateState.TESTING
                session.add(row)

    def save_stage(self, candidate_id: str, result: StageResult) -> StageResult:
        """Write down a stage's result and return what stands: the first result of a stage is its result."""
        with self._writing() as session:
            _find(session, candidate_id)
            row = session.get(StageRow, (candidate_id, result.stage))
            if row is not None:
                return StageResult.model_validate(row.record)
            position = session.exec(
                select(func.count()).select_from(StageRow).where(StageRow.candidate_id == candidate_id)
            ).one()
            session.add(
                StageRow(
                    candidate_id=candidate_id,
                    stage=result.stage,
                    position=position,
                    outcome=result.outcome,
                    record=result.model_dump(mode="json"),
                )
            )
            return result

    def stages(self, candidate_id: str) -> list[StageResult]:
        """Return the stages that a candidate has been through, in order."""
        query = select(StageRow).where(StageRow.candidate_id == candidate_id).order_by(col(StageRow.position))
        with self._reading() as session:
            return [StageResult.model_validate(row.record) for row in session.exec(query)]

    def save_verdict(self, verdict: Verdict) -> None:
        """Write down the gate's word and move the candidate on; the same again changes nothing.

        Raises:
            StoreError: the candidate has another verdict.
        """
        with self._writing() as session:
            row = _find(session, verdict.candidate_id)
            stored = session.get(VerdictRow, verdict.candidate_id)
            if stored is not None:
                _require_equal(stored, verdict)
                return
            session.add(_verdict_row(verdict))
            row.state = _STATE_AFTER[verdict.decision]
            if row.review != Review.QUARANTINED:
                row.review = Review.WAITING if verdict.decision is Decision.ACCEPT else Review.NONE
            session.add(row)

    def verdict(self, candidate_id: str) -> Verdict | None:
        """Return the gate's word on a candidate, or None.

        Raises:
            StoreError: it is not what was written down.
        """
        with self._reading() as session:
            return _verdict(session, candidate_id)

    def take(self, candidate_id: str, commit: str) -> None:
        """Write down that an accepted candidate is on the user's branch as `commit`; the same again is done.

        Raises:
            UserError: the gate did not accept the candidate, it is under quarantine, or was taken as another commit.
        """
        with self._writing() as session:
            row = _find(session, candidate_id)
            _refuse_quarantined(session, row)
            if row.state != CandidateState.ACCEPTED:
                raise UserError(f"candidate {candidate_id} cannot be taken: the gate's word is {row.state}")
            if row.review == Review.TAKEN and row.taken_commit != commit:
                raise UserError(f"candidate {candidate_id} was taken already, as commit {row.taken_commit}")
            row.review, row.taken_commit = Review.TAKEN, commit
            session.add(row)

    def refuse(self, candidate_id: str) -> None:
        """Write down that a person does not want an accepted candidate.

        Raises:
            UserError: there is nothing to refuse: the gate did not accept it, or it was taken.
        """
        with self._writing() as session:
            row = _find(session, candidate_id)
            _refuse_quarantined(session, row)
            if row.state != CandidateState.ACCEPTED or row.review == Review.TAKEN:
                word = "it was taken already" if row.review == Review.TAKEN else f"the gate's word is {row.state}"
                raise UserError(f"candidate {candidate_id} cannot be refused: {word}")
            row.review = Review.REFUSED
            session.add(row)

    def quarantine(self, candidate_id: str, reason: str) -> None:
        """Write down that sealed content came out with a candidate, for good; the first reason stands."""
        with self._writing() as session:
            row = _find(session, candidate_id)
            row.review = Review.QUARANTINED
            session.add(row)
            if session.get(QuarantineRow, candidate_id) is None:
                session.add(QuarantineRow(candidate_id=candidate_id, reason=reason, at=self._now()))

    def settle_predictions(self, candidate_id: str, came_true: Mapping[str, bool]) -> None:
        """Write down, by task, whether what the proposer predicted happened."""
        query = select(PredictionRow).where(PredictionRow.candidate_id == candidate_id)
        with self._writing() as session:
            for row in session.exec(query).all():
                row.came_true = came_true.get(row.task_id, row.came_true)
                session.add(row)

    def predictions(self, candidate_id: str | None = None) -> list[Prediction]:
        """Return the predictions for a candidate, or all."""
        query = select(PredictionRow).order_by(
            col(PredictionRow.candidate_id), col(PredictionRow.kind), col(PredictionRow.task_id)
        )
        if candidate_id is not None:
            query = query.where(PredictionRow.candidate_id == candidate_id)
        with self._reading() as session:
            return [Prediction.model_validate(row.model_dump()) for row in session.exec(query)]

    def record_guard_use(self, candidate_id: str, stage: str) -> None:
        """Write down that guard scores were looked at for a candidate's stage; once is once."""
        with self._writing() as session:
            row = _find(session, candidate_id)
            if session.get(GuardUseRow, (candidate_id, stage)) is None:
                session.add(
                    GuardUseRow(
                        candidate_id=candidate_id, stage=stage, environment=row.environment, used_at=self._now()
                    )
                )

    def guard_uses(self, environment: str) -> int:
        """Return how often the guard tasks of an environment were looked at, in all runs."""
        query = select(func.count()).select_from(GuardUseRow).where(GuardUseRow.environment == environment)
        with self._reading() as session:
            return session.exec(query).one()


def _find(session: Session, candidate_id: str) -> CandidateRow:
    row = session.get(CandidateRow, candidate_id)
    if row is None:
        raise UserError(f"the ledger has no candidate {candidate_id!r}; `evolve candidates list` shows those it has")
    return row


def _entry(session: Session, row: CandidateRow) -> CandidateEntry:
    reason = _quarantine(session, row)
    return CandidateEntry(
        candidate=Candidate.model_validate(row.record),
        state=CandidateState(row.state),
        review=Review.QUARANTINED if reason else Review(row.review),
        taken_commit=row.taken_commit,
        quarantine=reason,
        verdict=_verdict(session, row.candidate_id),
    )


def _quarantine(session: Session, row: CandidateRow) -> str:
    if row.review != Review.QUARANTINED and not inspect(session.connection()).has_table(QuarantineRow.__tablename__):
        return ""  # a ledger of version 1, opened for reading
    found = session.get(QuarantineRow, row.candidate_id)
    return found.reason if found else ""


def _refuse_quarantined(session: Session, row: CandidateRow) -> None:
    """Refuse whatever would lift a quarantine; the row of reasons counts also where the word was edited away."""
    reason = _quarantine(session, row)
    if reason or row.review == Review.QUARANTINED:
        raise UserError(f"candidate {row.candidate_id} is under quarantine and stays there: {reason}")


def _verdict(session: Session, candidate_id: str) -> Verdict | None:
    row = session.get(VerdictRow, candidate_id)
    if row is None:
        return None
    verdict = Verdict.model_validate(row.record)
    _require_equal(row, verdict)
    return verdict


def _require_equal(row: VerdictRow, verdict: Verdict) -> None:
    """Compare by digest, and with the columns that reports read."""
    stands = (row.evidence_digest, row.decision, row.effect)
    if stands != (verdict.evidence_digest, verdict.decision, verdict.effect):
        raise StoreError(
            f"the verdict on candidate {verdict.candidate_id} is not the one that was written down "
            f"(evidence {row.evidence_digest[:12]}); restore the ledger from a copy"
        )


def _candidate_row(candidate: Candidate) -> CandidateRow:
    names = set(CandidateRow.model_fields) & set(Candidate.model_fields)
    return CandidateRow(
        **{name: getattr(candidate, name) for name in names},
        state=CandidateState.PROPOSED,
        review=Review.NONE,
        record=candidate.model_dump(mode="json"),
    )


def _prediction_rows(candidate: Candidate) -> list[PredictionRow]:
    proposal = candidate.proposal
    told = {"fixed": proposal.predicts_fixed, "at_risk": proposal.at_risk}
    return [
        PredictionRow(candidate_id=candidate.candidate_id, task_id=task, kind=kind)
        for kind, tasks in told.items()
        for task in sorted(set(tasks))
    ]


def _verdict_row(verdict: Verdict) -> VerdictRow:
    return VerdictRow(
        candidate_id=verdict.candidate_id,
        decision=verdict.decision,
        effect=verdict.effect,
        evidence_digest=verdict.evidence_digest,
        record=verdict.model_dump(mode="json"),
    )
