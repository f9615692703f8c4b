"""Which trial numbers serve what, so that no score of a sampled model is used for two questions.

    0                            the evidence: the one trial whose traces proposers see (`observe.EVIDENCE_TRIAL`)
    1, 2, ...                    paired tests against the harness that the run began with
    1000 n, 1000 n + 1, ...      the confirmation of candidate n and, once it is accepted, paired tests against it
    2 000 000 + 1000 n + ...     the second arm of the A/A control before candidate n

Trials that an incumbent was accepted by flatter it. It is therefore measured anew on the trials that confirmed it.
"""

from __future__ import annotations

from evolve.loop.context import RunContext
from evolve.loop.observe import EVIDENCE_TRIAL
from evolve.records import Decision

BLOCK = 1000
CONTROL_TRIAL = 2_000_000


def first_trial(run: RunContext, number: int) -> int:
    """Return the first trial of the paired test of candidate `number`; a greedy model has only the one trial."""
    if run.model.is_greedy:
        return EVIDENCE_TRIAL
    known = [entry for entry in run.ledger.candidates(run.run_id) if entry.candidate.number < number and entry.verdict]
    accepted = [e.candidate.number for e in known if e.verdict and e.verdict.decision is Decision.ACCEPT]
    return confirmation_trial(max(accepted)) if accepted else EVIDENCE_TRIAL + 1


def confirmation_trial(number: int) -> int:
    """Return the first trial of the confirmation of candidate `number`: fresh for both arms."""
    return BLOCK * number


def control_trial(number: int, attempt: int, trials: int) -> int:
    """Return the first trial of the second arm of an A/A control: fresh for each attempt."""
    return CONTROL_TRIAL + BLOCK * number + trials * (attempt - 1)
