"""What a run has used of its budget, and whether what is left is enough to ask with. Asks and changes nothing."""

from __future__ import annotations

from collections.abc import Mapping

from evolve.config import Config
from evolve.errors import BudgetSpent, EvolveError
from evolve.holding import read_ledger
from evolve.models.budget import Budget, estimate
from evolve.models.cache import paid_on_record
from evolve.models.create import create_model
from evolve.records import Usage
from evolve.workspace import Workspace


def spent_on_record(workspace: Workspace, config: Config, environ: Mapping[str, str], run_id: str | None) -> Usage:
    """Return what a run has used, unfinished episodes included; nothing for a new run (None), or what does not read."""
    try:
        if run_id is None:
            return Usage()
        with read_ledger(workspace, config) as ledger:
            known = ledger.totals(run_id).usage if ledger else Usage()
        fingerprint = create_model(config.model, environ=environ).fingerprint
        return paid_on_record(workspace.completions(fingerprint.digest), run_id, known=known)
    except (EvolveError, ImportError):  # a run refuses for it
        return Usage()


def budget_warnings(config: Config, spent: Usage) -> tuple[str, ...]:
    """Return why a run would end at the first request that it has to ask: not even an empty one is within its budget.

    What is on record is not asked again, so the run may get to its end all the same.
    """
    sampling = {"max_tokens": config.model.max_tokens}
    try:
        Budget(usd=config.budget.usd, tokens=config.budget.tokens, spent=spent).reserve(
            estimate(0, sampling, config.model.price)
        )
    except BudgetSpent as error:
        return (f"a run would end at the first request that it has to ask the model: {error}",)
    return ()
