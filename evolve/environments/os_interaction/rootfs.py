"""The root file system that sandboxes see: where it is and whether it is whole. `build` makes one.

A folder of three parts: `root`, the file system, which nothing writes to; `manifest.json`, what it is; `mount`, an
empty folder over which each sandbox mounts its own layer, in a mount namespace of its own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from evolve.environments.data import data_home
from evolve.environments.options import path
from evolve.errors import ConfigError
from evolve.records import digest_of

NAME = "os_interaction"
HOST_NAME = "box"
MARKER = "var/lib/evolve-rootfs"
COMMAND = f"python -m evolve.environments.{NAME}.build"


@dataclass(frozen=True, slots=True)
class Rootfs:
    """A root file system on disk.

    Attributes:
        marker: what its marker file says; no other file system has it.
        digest: SHA-256 over the suite and the versions of all packages: what an agent can find in it.
    """

    folder: Path
    marker: str
    digest: str


def default_folder() -> Path:
    """Return where the root file system is looked for where no option names it."""
    return data_home() / NAME / "rootfs"


def chosen_rootfs(options: Mapping[str, object]) -> Rootfs:
    """Return the root file system that the option `rootfs` names, else the one in its default place.

    Raises:
        ConfigError: the option is no path, or there is no whole one.
    """
    return read_rootfs(path(NAME, "rootfs", options.get("rootfs", default_folder())).absolute())


def read_rootfs(folder: Path) -> Rootfs:
    """Read the manifest and compare it with the marker inside.

    Raises:
        ConfigError: there is none, or it is not whole.
    """
    try:
        manifest = json.loads((folder / "manifest.json").read_bytes())
        marker = (folder / "root" / MARKER).read_text("ascii").strip()
    except (OSError, ValueError) as error:
        raise ConfigError(f"{NAME}: no root file system in {folder}; `{COMMAND}` makes one (as root)") from error
    is_whole = isinstance(manifest, dict) and {"marker", "suite", "packages"} <= set(manifest)
    if not is_whole or not marker or marker != manifest["marker"] or not (folder / "mount").is_dir():
        raise ConfigError(f"{NAME}: the root file system in {folder} is not whole; remove it and run `{COMMAND}`")
    return Rootfs(folder, marker, digest_of([manifest["suite"], manifest["packages"]]))
