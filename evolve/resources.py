"""Where the packaged files lie: prompts, seed harnesses, recordings. Reads none of them."""

from __future__ import annotations

from pathlib import Path

from evolve.errors import UserError


def resource(name: str) -> Path:
    """Return the path of a packaged folder or file: inside an installed wheel, else in the checkout.

    Raises:
        UserError: the installation lacks it.
    """
    package = Path(__file__).parent
    checkout = package.parent / ("traces" if name.split("/")[0] == "recordings" else "")
    for path in (package / "_resources" / name, checkout / name):
        if path.exists():
            return path
    raise UserError(f"the installation lacks {name}; install evolve-harness again")
