"""The ledger as its users see it: one object over one database."""

from __future__ import annotations

from evolve.store.candidates import Candidates
from evolve.store.looks import Looks
from evolve.store.runs import Runs


class Ledger(Runs, Candidates, Looks):
    """Everything that evolve knows of its runs: `with Ledger(url) as ledger: ...`."""
