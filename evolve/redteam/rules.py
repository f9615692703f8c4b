"""Attacks of rule code: each is played in a rule worker, and in a plain child process, where it must get through."""

from __future__ import annotations

import ctypes
import json
import os
import secrets
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from evolve.errors import EvolveError
from evolve.harness.worker import WorkerPool, delta_json, opening_json
from evolve.records import Layer
from evolve.redteam import undefended
from evolve.redteam.outcome import Outcome, judged
from evolve.redteam.rule_code import ATTACKS, REACHED, RuleAttack, Target, source

CPU_S = 0.2
"""Processor time of a call in these plays: less than the attack on it takes."""

TIMEOUT_S = 120


async def attack_with_rules(pool: WorkerPool | None = None) -> list[Outcome]:
    """Play every attack against a file, the memory, the variables and the network of this machine.

    Args:
        pool: where the rules run; None makes one with all the isolation that this machine has.
    """
    if pool is None:
        async with WorkerPool(minimum_tier="rlimits", call_timeout_s=CPU_S) as made:
            return await attack_with_rules(made)
    with planted() as targets:
        outside = undefended_words(ATTACKS, targets)
        inside = [await _words(pool, attack, targets) for attack in ATTACKS]
    return [
        judged(
            attack.case,
            "rule code",
            attack.attack,
            tier=pool.tier,
            is_through=REACHED in shut_in,
            is_through_undefended=REACHED in loose,
        )
        for attack, shut_in, loose in zip(ATTACKS, inside, outside, strict=True)
    ]


@contextmanager
def planted() -> Iterator[Mapping[Target, str]]:
    """Plant a canary in a file that everybody may read and in the memory of this process; open a port."""
    canary = f"{REACHED}-{secrets.token_hex(8)}"
    held = ctypes.create_string_buffer(canary.encode())
    with tempfile.TemporaryDirectory(prefix="evolve-redteam-") as folder, socket.create_server(("127.0.0.1", 0)) as ear:
        file = Path(folder, "gold.txt")
        file.write_text(canary, "ascii")
        yield {
            "file": str(file),
            "memory": f"{os.getpid()} {ctypes.addressof(held)}",
            "process": str(os.getpid()),
            "port": str(ear.getsockname()[1]),
            "nothing": "",
        }


def undefended_words(attacks: Sequence[RuleAttack], targets: Mapping[Target, str]) -> list[str]:
    """Return what each attack says in a plain child process."""
    asked = json.dumps([(attack.body, targets[attack.target]) for attack in attacks])
    command = [sys.executable, "-ISB", str(Path(undefended.__file__))]
    ended = subprocess.run(command, input=asked, capture_output=True, text=True, timeout=TIMEOUT_S, check=True, cwd="/")
    words: list[str] = json.loads(ended.stdout.splitlines()[-1])
    return words


async def _words(pool: WorkerPool, attack: RuleAttack, targets: Mapping[Target, str]) -> str:
    """Return what an attack says from inside a worker; one that cannot even be played says nothing."""
    try:
        worker = await pool.start_episode({"action.py": source(attack.body)}, opening_json("the task", (), 9))
    except EvolveError:
        return ""
    text = targets[attack.target]
    delta = delta_json(steps=(), text=text, proposed=None, admissible=None, steps_left=3)
    try:
        return (await worker.run(Layer.ACTION, ["action.x"], delta))[0].text if worker.load_error is None else ""
    finally:
        await worker.close()
