"""Plays one rule and looks whether the episode goes on. Shared by the tests of the worker."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from evolve.harness.worker import Layers, RuleReply, RuleWorker, WorkerPool, delta_json, opening_json
from evolve.records import Json, Layer
from evolve.redteam.rule_code import ESCAPE, source

STOCK = """
@action_rule(id="action.stock", strength="block", evidence="e")
def stock(view, memory):
    return Block("stock " + view.text)
"""
OPENING = opening_json("the task", (), 9)


def children_of(process: int | None) -> list[int]:
    """Return the process ids of a process's children; nobody's where the system does not tell."""
    listed = Path(f"/proc/{process}/task/{process}/children")
    return [int(child) for child in listed.read_text().split()] if listed.exists() else []


async def the_worker_of(pool: WorkerPool) -> int:
    """Return the process id of a pool's only worker, once the one that tried the isolation is buried."""
    for _ in range(1000):
        if len(workers := children_of(pool.zygote_process_id)) == 1:
            return workers[0]
        await asyncio.sleep(0.01)
    raise AssertionError(workers)


def delta(text: str = "", **changed: Any) -> Json:
    """Return a delta without new steps."""
    present: Json = {"steps": (), "text": text, "proposed": None, "admissible": None, "steps_left": 3}
    return delta_json(**{**present, **changed})


def rule(body: str, *, strength: str = "force", top: str = "") -> str:
    """Return an action.py with rule `action.x` made of the body, and a stock rule after it."""
    return source(body, more=STOCK, top=top, strength=strength)


async def ask(worker: RuleWorker, *units: str, text: str = "", **changed: Any) -> Sequence[RuleReply]:
    """Ask action rules once."""
    return await worker.run(Layer.ACTION, units or ("action.x",), delta(text, **changed))


async def ask_one(worker: RuleWorker, unit: str = "action.x", text: str = "") -> RuleReply:
    """Ask one action rule once."""
    return (await ask(worker, unit, text=text))[0]


class Stage:
    """Plays rules in pools that are kept, one for each set of options, so that a play costs a fork and no more."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self._pools: dict[str, WorkerPool] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        for pool in self._pools.values():
            self._runner.run(pool.close())
        self._runner.close()

    def play(
        self, body: str, *, text: str = "", layers: Layers = Layers.ALL, top: str = ESCAPE, **options: Any
    ) -> RuleReply:
        """Ask a rule once; a stock rule must answer in the same episode, or where that worker died, in the next."""
        return self._runner.run(self._play({"action.py": rule(body, top=top)}, text, layers, options))

    async def _play(self, sources: dict[str, str], text: str, layers: Layers, options: dict[str, Any]) -> RuleReply:
        pool = await self._pool(layers, options)
        worker = await pool.start_episode(sources, OPENING)
        assert worker.load_error is None
        reply = await ask_one(worker, text=text)
        after = await ask_one(worker, "action.stock", text="after")
        await worker.close()
        if after.kind == "fault":
            assert after.fault == "crashed"
            worker = await pool.start_episode(sources, OPENING)
            after = await ask_one(worker, "action.stock", text="after")
            await worker.close()
        assert after.text == "stock after"
        return reply

    async def _pool(self, layers: Layers, options: dict[str, Any]) -> WorkerPool:
        key = repr((layers, options))
        if key not in self._pools:
            self._pools[key] = WorkerPool(minimum_tier="rlimits", layers=layers, **{"call_timeout_s": 0.1, **options})
            await self._pools[key].start()
        return self._pools[key]
