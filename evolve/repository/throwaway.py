"""A history of its own for an exported copy, so that tools in it look no further up for one."""

from __future__ import annotations

from pathlib import Path

from evolve.repository.command import Git, create_repository

_AUTHOR = ("-c", "user.name=evolve", "-c", "user.email=evolve@localhost", "-c", "commit.gpgSign=false")


def start_throwaway_history(folder: Path) -> None:
    """Make a fresh export a repository with one commit. To be called before anybody else can write there.

    A folder that has a history already may have been edited, and is left alone: git runs programs that a repository's
    own settings name.
    """
    if (folder / ".git").exists() or (folder / ".git").is_symlink():
        return
    create_repository(folder)
    git = Git(folder)
    try:
        git.run("add", "--all", "--force")
        git.run(*_AUTHOR, "commit", "--quiet", "--allow-empty", "--message", "The harness as it is.")
    finally:
        git.close()
