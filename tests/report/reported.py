"""Which run the tests of this folder report on, and how its workspace is opened."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import small_run

from evolve.holding import open_ledger
from evolve.repository import Repository, open_repository
from evolve.store.ledger import Ledger
from evolve.traces import Traces
from evolve.workspace import Workspace

RUN = "household-001"


@contextmanager
def opened(workspace: Workspace) -> Iterator[tuple[Ledger, Repository, Traces]]:
    """Open what a report is built from."""
    with open_ledger(workspace, small_run.configured()) as ledger, open_repository(workspace.root) as repository:
        yield ledger, repository, Traces(workspace.traces)
