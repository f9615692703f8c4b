"""All attacks that take seconds, tried on this machine in a temporary folder."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping
from pathlib import Path

from evolve.redteam.agents import attack_with_an_agent
from evolve.redteam.intake import attack_export, attack_read_back
from evolve.redteam.onlooker import attack_from_a_child
from evolve.redteam.outcome import Outcome
from evolve.redteam.rules import attack_with_rules
from evolve.redteam.world import build_world


def attack_this_machine(environ: Mapping[str, str]) -> list[Outcome]:
    """Try them and say how each came out, in the order of the parties.

    Raises:
        EvolveError: no rule worker starts here, so that nothing can be said.
    """
    outcomes = [*asyncio.run(attack_with_rules()), *attack_from_a_child()]
    with tempfile.TemporaryDirectory(prefix="evolve-redteam-", ignore_cleanup_errors=True) as folder:
        top = Path(folder).resolve()
        outcomes += attack_read_back(top / "read-back")
        with build_world(top / "world") as world:
            outcomes += attack_export(world, top / "copy")
            outcomes += attack_with_an_agent(world, environ)
    return outcomes
