"""Where τ²-bench's data is: a folder that a user names, or that the installed package brings.

Two layouts are known: one folder that holds `airline/`, `retail/`, `telecom/` and `user_simulator/`, and upstream's
data folder, where the same stands below `tau2/domains/` and `tau2/`.
"""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

from evolve.environments.data import data_home

NAME = "tau2"
DATA_VARIABLE = "TAU2_DATA_DIR"


def find_places(chosen: Path | None) -> tuple[Path, ...]:
    """Return the folders in which files are looked for: that of the domains, and what stands beside it upstream.

    The first of these that is there counts: the option, TAU2_DATA_DIR, `tau2` below EVOLVE_DATA, the package.
    """
    named = os.environ.get(DATA_VARIABLE)
    folder = chosen or (Path(named).expanduser() if named else _own_or_packaged())
    domains = next(
        (inner for inner in (folder / "tau2" / "domains", folder / "domains") if os.path.isdir(inner)), folder
    )
    return (domains, domains.parent) if domains.name == "domains" else (domains,)


def packaged_data() -> Path | None:
    """Return the data folder inside the installed package; None where it has none, as a checkout."""
    spec = importlib.util.find_spec("tau2")
    inside = spec.submodule_search_locations if spec is not None else None
    folder = Path(next(iter(inside))) / "data" if inside else None
    return folder if folder is not None and os.path.isdir(folder) else None


def _own_or_packaged() -> Path:
    own = data_home() / NAME
    packaged = packaged_data()
    return packaged if packaged is not None and not os.path.isdir(own) else own
