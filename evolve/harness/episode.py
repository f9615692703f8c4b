"""The four layers around one episode. Decides nothing about tasks or scores and never talks to the model."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import orjson

from evolve.harness.artifact import Contract, Skill
from evolve.harness.worker import RuleReply, RuleWorker, StartingWorker, delta_json
from evolve.records import (
    Call,
    Effect,
    Fault,
    FaultKind,
    Firing,
    Layer,
    Observation,
    Opening,
    ProposedCall,
    Step,
    Strength,
    Tool,
)

PROBES_PER_TURN = 4
EFFECTS: dict[str, Strength] = {"block": Strength.BLOCK, "rewrite": Strength.REWRITE, "force": Strength.FORCE}


class Switches(Protocol):
    """What the run decided about units."""

    @property
    def cap(self) -> Strength:
        """The strongest outcome allowed."""

    @property
    def block_cap(self) -> int:
        """Blocks per episode and unit."""

    def is_on(self, unit: str, layer: Layer) -> bool:
        """Tell whether a unit may fire."""


class Prober(Protocol):
    """The part of a session that a rule's probe may reach."""

    def probe(self, call: Call) -> Observation:
        """Run a read-only call without counting a step."""


@dataclass(frozen=True)
class Turn:
    """What rules are shown of the present: the model's words and call, and what may be done now."""

    text: str
    proposed: ProposedCall | Call | None
    admissible: tuple[str, ...] | None


@dataclass(frozen=True)
class Realized:
    """What Action Realization made of a turn: a call to run, or a message that blocks it, or neither."""

    call: Call | None
    message: str | None = None
    firings: tuple[Firing, ...] = ()


@dataclass(frozen=True)
class Regulated:
    """What Trajectory Regulation adds: a note for the model, or (at strength force) the next call."""

    note: str | None = None
    forced: Call | None = None
    firings: tuple[Firing, ...] = ()


@dataclass
class _Pass:
    """One pass of a layer over its units; a rewrite changes the turn that later units see."""

    step: int
    turn: Turn
    units: list[str]
    firings: list[Firing] = field(default_factory=list)
    probes: list[str] = field(default_factory=list)


class EpisodeHarness:
    """The state of one episode's harness: conditioned prompt and tools, rule worker, block counts, faults."""

    def __init__(self, switches: Switches, opening: Opening, tools: Sequence[Tool], step_limit: int) -> None:
        self.system = opening.system
        self.tools: tuple[Tool, ...] = tuple(tools)
        self.opening_firings: list[Firing] = []
        self.faults: list[Fault] = []
        self._switches = switches
        self._read_only = {tool.name for tool in tools if tool.read_only}
        self._step_limit = step_limit
        self._starting: StartingWorker | None = None
        self._worker: RuleWorker | None = None
        self._on: dict[Layer, list[str]] = {}
        self._blocks: Counter[str] = Counter()
        self._shown = 0

    @property
    def isolation(self) -> str:
        """Tier of the rule worker, or 'none' where no rule runs."""
        return self._worker.tier if self._worker else "none"

    @property
    def rule_units(self) -> list[tuple[str, Layer]]:
        """The units that the loaded rule code declares, in order; empty before `ready`."""
        return [(rule.id, rule.layer) for rule in self._worker.declarations] if self._worker else []

    def apply_contract(self, contract: Contract) -> None:
        """Environment Contract: add notes to the system prompt and to tool descriptions; nothing else changes."""
        for note in contract.system:
            if self._switches.is_on(note.id, Layer.CONTRACT):
                self.system = f"{self.system}\n\n{note.text}"
                self._fire_opening(note.id, Layer.CONTRACT, note.text)
        for note in contract.tool:
            is_offered = any(tool.name == note.tool for tool in self.tools)
            if is_offered and self._switches.is_on(note.id, Layer.CONTRACT):
                self.tools = tuple(_noted(tool, note.text) if tool.name == note.tool else tool for tool in self.tools)
                self._fire_opening(note.id, Layer.CONTRACT, note.text)

    def apply_skills(self, skills: Sequence[Skill]) -> None:
        """Procedural Skill: put the retrieved skills at the end of the system prompt."""
        for skill in skills:
            text = f"{skill.head.title}\n{skill.body}"
            self.system = f"{self.system}\n\n{text}"
            self._fire_opening(skill.head.id, Layer.SKILL, text)

    def attach(self, starting: StartingWorker) -> None:
        """Take the worker that will hold this episode's rules once it has started."""
        self._starting = starting

    async def ready(self) -> None:
        """Wait until the rules are loaded; a harness that does not load is one fault.

        Raises:
            WorkerError: no worker can be started.
            CanaryFound: the harness gave a canary away while it was loaded.
        """
        if self._starting is None:
            return
        self._worker = await self._starting.worker()
        self._starting = None
        for rule in self._worker.declarations:
            if self._switches.is_on(rule.id, rule.layer):
                self._on.setdefault(rule.layer, []).append(rule.id)
        if self._worker.load_error:
            self.faults.append(Fault(unit="harness", step=-1, kind="raised", message=self._worker.load_error))

    async def realize(
        self,
        text: str,
        proposed: ProposedCall | None,
        *,
        steps: Sequence[Step],
        prober: Prober,
        admissible: tuple[str, ...] | None,
    ) -> Realized:
        """Action Realization: pass, rewrite or block what the model proposed."""
        call = _call_of(proposed)
        work = _Pass(len(steps), Turn(text, proposed, admissible), self._units(Layer.ACTION))
        async for reply in self._changes(Layer.ACTION, work, steps, prober):
            if reply.kind == "rewrite":
                rewritten = Call(tool=reply.tool, arguments=reply.arguments)
                if rewritten != call:
                    work.firings.append(_firing(reply, work.step, "rewrite", _show(call, text), _show(rewritten, "")))
                call, work.turn = rewritten, Turn(text, rewritten, admissible)
            elif self._may_block(reply.unit):
                work.firings.append(_firing(reply, work.step, "block", _show(call, text), reply.text))
                return Realized(None, reply.text, tuple(work.firings))
            else:
                work.firings.append(_firing(reply, work.step, "let_through", _show(call, text), reply.text))
        return Realized(call, None, tuple(work.firings))

    async def regulate(self, *, steps: Sequence[Step], prober: Prober, admissible: tuple[str, ...] | None) -> Regulated:
        """Trajectory Regulation: notes on the step just taken, the last of `steps`."""
        last = steps[-1]
        turn = Turn(last.text, last.proposed, admissible)
        work = _Pass(last.index, turn, self._units(Layer.TRAJECTORY))
        notes: list[str] = []
        forced: Call | None = None
        async for reply in self._changes(Layer.TRAJECTORY, work, steps, prober):
            if reply.kind == "note":
                notes.append(reply.text)
                work.firings.append(_firing(reply, work.step, "note", "", reply.text))
            elif forced is None:
                forced = Call(tool=reply.tool, arguments=reply.arguments)
                work.firings.append(_firing(reply, work.step, "force", "", _show(forced, "")))
        return Regulated("\n".join(notes) or None, forced, tuple(work.firings))

    async def close(self) -> None:
        """End the worker, also one that nobody waited for.

        Raises:
            CanaryFound: the harness gave a canary away while it was loaded, and nobody was told yet.
        """
        if self._starting is not None:
            starting, self._starting = self._starting, None
            await starting.drop()
        if self._worker is not None:
            await self._worker.close()

    def _units(self, layer: Layer) -> list[str]:
        if self._starting is not None:
            raise RuntimeError("the rules are not loaded yet: wait for `ready`")
        return list(self._on.get(layer, ()))

    async def _changes(
        self, layer: Layer, work: _Pass, steps: Sequence[Step], prober: Prober
    ) -> AsyncIterator[RuleReply]:
        """Yield what units want to change, each unit asked once; answers probes and notes faults on the way."""
        while work.units and self._worker is not None:
            delta = delta_json(
                steps=steps[self._shown :],
                text=work.turn.text,
                proposed=work.turn.proposed,
                admissible=work.turn.admissible,
                steps_left=self._step_limit - len(steps),
                probes=work.probes,
            )
            self._shown = len(steps)
            replies = await self._worker.run(layer, work.units, delta)
            is_probing = replies[-1].kind == "probe" and len(work.probes) < PROBES_PER_TURN
            work.units = work.units[len(replies) - is_probing :]
            for reply in replies[: len(replies) - is_probing]:
                if reply.kind != "pass" and self._is_allowed(reply, work.step):
                    yield reply
            work.probes = [*work.probes, self._probe(replies[-1], work, prober)] if is_probing else []

    def _is_allowed(self, reply: RuleReply, step: int) -> bool:
        """Tell whether a change stands; a fault, a probe too many or too strong an outcome disables the unit."""
        if reply.kind == "fault" and reply.fault is not None:
            self._disable(reply.unit, step, reply.fault, reply.text)
            return False
        if reply.kind == "probe":
            self._disable(reply.unit, step, "nonsense", f"more than {PROBES_PER_TURN} probes in one turn")
            return False
        strength = EFFECTS.get(reply.kind, Strength.NOTE)
        if strength.rank > self._switches.cap.rank:
            words = f"returned {reply.kind}, and this run allows at most {self._switches.cap.value}"
            self._disable(reply.unit, step, "over_strength", words)
            return False
        return True

    def _disable(self, unit: str, step: int, kind: FaultKind, message: str) -> None:
        for units in self._on.values():
            if unit in units:
                units.remove(unit)
        self.faults.append(Fault(unit=unit, step=step, kind=kind, message=message))

    def _probe(self, reply: RuleReply, work: _Pass, prober: Prober) -> str:
        call = Call(tool=reply.tool, arguments=reply.arguments)
        if call.tool in self._read_only:
            answer = prober.probe(call).text
        else:
            answer = f"{call.tool} is not a read-only tool and cannot be probed"
        work.firings.append(_firing(reply, work.step, "probe", _show(call, ""), answer))
        return answer

    def _may_block(self, unit: str) -> bool:
        self._blocks[unit] += 1
        return self._blocks[unit] <= self._switches.block_cap

    def _fire_opening(self, unit: str, layer: Layer, text: str) -> None:
        firing = Firing(unit=unit, layer=layer, strength=Strength.NOTE, step=-1, effect="note", after=text)
        self.opening_firings.append(firing)


def _firing(reply: RuleReply, step: int, effect: Effect, before: str, after: str) -> Firing:
    layer = Layer(reply.unit.partition(".")[0])
    strength = EFFECTS.get(effect, Strength.NOTE)
    return Firing(unit=reply.unit, layer=layer, strength=strength, step=step, effect=effect, before=before, after=after)


def _noted(tool: Tool, text: str) -> Tool:
    return tool.model_copy(update={"description": f"{tool.description} {text}"})


def _call_of(proposed: ProposedCall | None) -> Call | None:
    if proposed is None or proposed.arguments is None:
        return None
    return Call(tool=proposed.tool, arguments=proposed.arguments)


def _show(call: Call | None, text: str) -> str:
    return text if call is None else f"{call.tool}({orjson.dumps(call.arguments).decode()})"
