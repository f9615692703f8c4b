"""Adds environments to a workspace that is there: the seed harness of each, all in one commit, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from evolve.errors import UserError
from evolve.holding import hold_repository
from evolve.lock import alone_in
from evolve.repository import add_folders, harness_folder, open_repository
from evolve.workspace import Workspace, seed_harness


@dataclass(frozen=True)
class Extended:
    """The environments that were added, those that had been there, and the commit that added them."""

    added: list[str]
    kept: list[str]
    commit: str


def add_environments(workspace: Workspace, environments: Sequence[str], *, date: datetime) -> Extended:
    """Commit the seed harness of each environment that has no harness at HEAD.

    Raises:
        UserError: each has one, or something that is not committed lies in its place; nothing was changed then.
        WorkspaceBusy: another process works in the workspace.
        RepositoryError: the workspace is no repository with a commit, or a landing there cannot be finished.
    """
    open_repository(workspace.root).close()  # before the lock makes a folder in what is no workspace
    with alone_in(workspace.root), hold_repository(workspace) as repository:
        added = [name for name in environments if repository.harness_tree("HEAD", name) is None]
        kept = [name for name in environments if name not in added]
        if not added:
            raise UserError(
                f"{workspace.root} has {' and '.join(kept)} already; nothing is left to add "
                "(`evolve env list` names what is installed)"
            )
        folders = {harness_folder(name): seed_harness(name) for name in added}
        message = f"Add the seed harness of {' and '.join(added)}"
        return Extended(added, kept, add_folders(repository, folders, message=message, date=date))
