"""Where a command works: the workspace, its configuration and variables; and its ledger and repository, opened."""

from __future__ import annotations

import os
import shlex
from collections.abc import Collection, Coroutine, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from evolve.cli.environ import with_dotenv
from evolve.clock import clock_of
from evolve.config import Config, Told, load_config
from evolve.errors import Interrupted, UserError
from evolve.holding import Held, hold_workspace, read_ledger
from evolve.workspace import Workspace, find_workspace

if TYPE_CHECKING:
    from evolve.store.ledger import Ledger

T = TypeVar("T")
LEDGER_VARIABLE = "EVOLVE_LEDGER__URL"


@dataclass(frozen=True)
class Place:
    """A workspace with its configuration.

    `environ` holds the variables of .env too, `told` what the options say; `named` and `settings` are the options that
    named the workspace and changed its configuration, as they were written.
    """

    workspace: Workspace
    config: Config
    sources: Mapping[str, str]
    environ: Mapping[str, str]
    told: Told = field(default_factory=Told)
    named: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()

    def then(self, *words: str, is_told: bool = False) -> str:
        """Return the command line of a further command at this place.

        Args:
            is_told: with the --config and --set of this one; without, by what the workspace says. A ledger that
                the workspace does not name is left to be filled in: its URL may hold a password.
        """
        line = shlex.join(["evolve", *words, *self.named, *(self.settings if is_told else ())])
        by_itself = (None, str(self.workspace.config_file), LEDGER_VARIABLE)
        return line if self.sources.get("ledger.url") in by_itself else f"{LEDGER_VARIABLE}=… {line}"

    def now(self) -> datetime:
        """Return the time that is written into commits and rows."""
        return clock_of(self.environ)()


def find_place(
    start: Path | None,
    *,
    file: Path | None = None,
    assignments: list[str] | None = None,
    flags: Mapping[str, Any] | None = None,
    before: Told | None = None,
    only: Collection[str] | None = None,
) -> Place:
    """Find the workspace that holds `start` (None: the current folder) and read its configuration; see `load_config`.

    Raises:
        UserError: there is none, or the configuration is wrong.
    """
    folder = start or Path.cwd()
    if not folder.is_dir():
        raise UserError(f"{folder} is not a folder; --workspace names a workspace or a folder in one")
    workspace = find_workspace(folder)
    environ = with_dotenv(os.environ, workspace.root / ".env")
    loaded = load_config(
        workspace.root,
        file=file,
        environ=environ,
        assignments=tuple(assignments or ()),
        flags=flags,
        before=before,
        only=only,
    )
    named = ("-C", str(start)) if start else ()
    assignments = [one for one in assignments or () if not one.strip().startswith("ledger")]
    settings = [
        *(["--config", str(file)] if file else []),
        *(part for one in assignments or () for part in ("--set", one)),
    ]
    return Place(workspace, loaded.config, loaded.sources, environ, loaded.told, named, tuple(settings))


def configuration(start: Path | None, *, file: Path | None, assignments: list[str] | None) -> Config:
    """Return the configuration of the workspace here, or where there is none what the options and variables say.

    Raises:
        UserError: `start` is in no workspace, or the configuration is wrong.
    """
    if workspace_around(start) is None:
        return load_config(None, file=file, environ=os.environ, assignments=tuple(assignments or ())).config
    return find_place(start, file=file, assignments=assignments).config


def workspace_around(start: Path | None) -> Workspace | None:
    """Return the workspace that holds `start`; where none is named that of the current folder, or None.

    Raises:
        UserError: the folder that is named is in no workspace.
    """
    if start is not None:
        return find_workspace(start)
    try:
        return find_workspace(Path.cwd())
    except UserError:
        return None


def reading(place: Place) -> AbstractContextManager[Ledger | None]:
    """Open the ledger for reading; see `read_ledger`."""
    return read_ledger(place.workspace, place.config)


@contextmanager
def inspecting(place: Place) -> Iterator[Ledger]:
    """Open the ledger for reading where a command needs one.

    Raises:
        UserError: there are no runs yet.
    """
    with reading(place) as ledger:
        if ledger is None:
            raise UserError("no runs yet; `evolve run` starts one")
        yield ledger


def writing(place: Place) -> AbstractContextManager[Held]:
    """Hold the workspace alone, with its repository and its ledger open for writing."""
    return hold_workspace(place.workspace, place.config, place.environ)


def wait_for(work: Coroutine[Any, Any, T]) -> T:
    """Run work to its end on an event loop.

    Raises:
        Interrupted: Ctrl-C; where work takes the first as a wish to stop, the one after that.
    """
    import asyncio

    from evolve.cli.interrupts import cancelling

    runner = asyncio.Runner()
    try:
        with cancelling(runner.get_loop()), runner:
            return runner.run(work)
    except (KeyboardInterrupt, asyncio.CancelledError) as error:
        raise Interrupted(
            "interrupted; what was recorded is kept, the same command goes on (a run with --resume)"
        ) from error
