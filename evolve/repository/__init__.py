"""The only package that uses git: harness versions as commits, and edited copies read back as plain files.

Nothing here runs git inside a folder that a proposer could write to, and no command runs the user's hooks.
"""

from evolve.repository.collect import MOST_FILES, Collected, Refusal, collect
from evolve.repository.command import require_outside_git
from evolve.repository.gitignore import GITIGNORE, extend_gitignore, require_gitignore_committed
from evolve.repository.landing import (
    accept_candidate,
    add_folders,
    finish_landing,
    land_files,
    require_landable,
    require_nothing_unfinished,
)
from evolve.repository.marks import read_marks, refs_under, write_mark
from evolve.repository.names import CANDIDATES, LOOKS, RUNS, candidate_ref, harness_folder, look_ref, run_branch
from evolve.repository.repository import Repository, init_repository, open_repository
from evolve.repository.stale import remove_stale_locks
from evolve.repository.tags import freeze, read_tag, tags
from evolve.repository.throwaway import start_throwaway_history
from evolve.repository.trailers import Trailers
from evolve.repository.worktree import add_worktree, remove_worktree

__all__ = [
    "CANDIDATES",
    "GITIGNORE",
    "LOOKS",
    "MOST_FILES",
    "RUNS",
    "Collected",
    "Refusal",
    "Repository",
    "Trailers",
    "accept_candidate",
    "add_folders",
    "add_worktree",
    "candidate_ref",
    "collect",
    "extend_gitignore",
    "finish_landing",
    "freeze",
    "harness_folder",
    "init_repository",
    "land_files",
    "look_ref",
    "open_repository",
    "read_marks",
    "read_tag",
    "refs_under",
    "remove_stale_locks",
    "remove_worktree",
    "require_gitignore_committed",
    "require_landable",
    "require_nothing_unfinished",
    "require_outside_git",
    "run_branch",
    "start_throwaway_history",
    "tags",
    "write_mark",
]
