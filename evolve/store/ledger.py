"""The ledger as its users see it: one object over one database."""

from __future__ import annotations

from evolve.store.candidates import Candidates
from evolve.store.commitments import Commitments
from evolve.store.episodes import Episodes
from evolve.store.looks import Looks
from evolve.store.rulers import Rulers
from evolve.store.runs import Runs
from evolve.store.self_checks import SelfChecks


class Ledger(Runs, Episodes, Rulers, Candidates, SelfChecks, Looks, Commitments):
    """Everything that evolve knows of its runs: `with Ledger(url) as ledger: ...`."""
