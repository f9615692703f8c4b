"""The four layers around one episode. Decides nothing about tasks or scores and never talks to the model.

Off is identical: without an active unit every text and tool passes through as the same object.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from evolve.harness.artifact import RULE_FILES, Harness, Skill
from evolve.harness.skills import SkillIndex
from evolve.harness.worker import RuleReply, RuleWorker, WorkerPool
from evolve.records import (
    Call,
    Fault,
    Firing,
    Json,
    Layer,
    Observation,
    Opening,
    ProposedCall,
    Step,
    Strength,
    Tool,
    digest_of,
)

PROBES_PER_TURN = 4
OFF = "off"


class Prober(Protocol):
    """The part of a session that a rule's probe may reach."""

    def probe(self, call: Call) -> Observation:
        """Run a read-only call without counting a step."""


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


class HarnessRuntime:
    """A harness with the run's switches, ready to begin episodes."""

    def __init__(
        self,
        harness: Harness | None,
        pool: WorkerPool | None,
        *,
        cap: Strength = Strength.REWRITE,
        off: frozenset[str] = frozenset(),
    ) -> None:
        self.harness = harness
        self.cap = cap
        self.off = off
        self._pool = pool
        self._skills = SkillIndex(self._active_skills())

    @property
    def digest(self) -> str:
        """Digest of what is active: 'off' where no unit can fire, so that equal behaviour shares episodes."""
        if self.harness is None or not (self._active_text_units() or self._active_sources()):
            return OFF
        return digest_of([self.harness.digest, self.cap.value, sorted(self.off)])

    async def begin(self, opening: Opening, tools: Sequence[Tool], *, task_text: str, step_limit: int) -> EpisodeHarness:
        """Apply the two layers that act before the episode and start the rule worker where there are rules."""
        episode = EpisodeHarness(self, opening, tools, step_limit)
        if self.harness is not None:
            episode.apply_contract()
            episode.apply_skills(self._skills, task_text)
            sources = self._active_sources()
            if sources and self._pool is not None:
                await episode.start_rules(self._pool, sources, task_text)
        return episode

    def is_on(self, unit: str, layer: Layer) -> bool:
        """Tell whether a unit may fire under this run's switches."""
        return self.harness is not None and self.harness.is_on(unit, layer, self.off)

    def _active_text_units(self) -> list[str]:
        return [u for u, layer in self.harness.text_units() if self.is_on(u, layer)] if self.harness else []

    def _active_skills(self) -> list[Skill]:
        return [s for s in self.harness.skills if self.is_on(s.head.id, Layer.SKILL)] if self.harness else []

    def _active_sources(self) -> dict[str, str]:
        if self.harness is None:
            return {}
        layers = self.harness.settings.layers
        return {
            name: text
            for name, text in self.harness.rule_sources.items()
            if getattr(layers, RULE_FILES[name].value) and RULE_FILES[name].value not in self.off
        }


@dataclass
class _Outcome:
    """Collects what rules did within one call of a layer."""

    firings: list[Firing] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    forced: Call | None = None


class EpisodeHarness:
    """The state of one episode's harness: conditioned prompt and tools, rule worker, block counts, faults."""

    def __init__(self, runtime: HarnessRuntime, opening: Opening, tools: Sequence[Tool], step_limit: int) -> None:
        self._runtime = runtime
        self.system = opening.system
        self.tools: Sequence[Tool] = tools
        self._opening = opening
        self._offered = tuple(tools)
        self._step_limit = step_limit
        self.opening_firings: list[Firing] = []
        self.faults: list[Fault] = []
        self._worker: RuleWorker | None = None
        self._blocks: Counter[str] = Counter()
        self._sent = 0

    @property
    def isolation(self) -> str:
        """Tier of the rule worker, or 'none' where no rule runs."""
        return self._worker.tier if self._worker else "none"

    def apply_contract(self) -> None:
        """Environment Contract: add notes to the system prompt and to tool descriptions; nothing else changes."""
        contract = self._harness.contract
        system = [n for n in contract.system if self._runtime.is_on(n.id, Layer.CONTRACT)]
        tools = [n for n in contract.tool if self._runtime.is_on(n.id, Layer.CONTRACT)]
        for note in system:
            self.system = f"{self.system}\n\n{note.text}"
            self._fire_opening(note.id, Layer.CONTRACT, note.text)
        for tool_note in tools:
            if any(tool.name == tool_note.tool for tool in self.tools):
                self.tools = [_with_note(tool, tool_note.tool, tool_note.text) for tool in self.tools]
                self._fire_opening(tool_note.id, Layer.CONTRACT, tool_note.text)

    def apply_skills(self, index: SkillIndex, task_text: str) -> None:
        """Procedural Skill: put the retrieved skills at the end of the system prompt."""
        limits = self._harness.settings.limits
        for skill in index.retrieve(task_text, top_k=limits.skills_top_k, min_score=limits.skills_min_score):
            text = f"{skill.head.title}\n{skill.body}"
            self.system = f"{self.system}\n\n{text}"
            self._fire_opening(skill.head.id, Layer.SKILL, text)

    async def start_rules(self, pool: WorkerPool, sources: dict[str, str], task_text: str) -> None:
        """Start the worker that holds this episode's rules; a harness that does not load is one fault."""
        opening: Json = {
            "task": task_text,
            "tools": [tool.model_dump() for tool in self._offered],
            "step_limit": self._step_limit,
        }
        self._worker = await pool.start_episode(sources, opening)
        if self._worker.load_error:
            self.faults.append(Fault(unit="harness", step=-1, kind="raised", message=self._worker.load_error))

    async def realize(self, text: str, proposed: ProposedCall | None, *, steps: Sequence[Step], prober: Prober) -> Realized:
        """Action Realization: pass, rewrite or block what the model proposed."""
        outcome = _Outcome()
        call = _call_of(proposed)
        units = self._units(Layer.ACTION)
        while units:
            reply = await self._run(Layer.ACTION, units, steps, text=text, proposed=proposed, call=call, prober=prober)
            if reply is None or reply.kind in ("pass", "fault"):
                break
            units = units[units.index(reply.unit) + 1 :]
            if reply.kind == "rewrite":
                rewritten = Call(tool=reply.tool, arguments=reply.arguments)
                if rewritten != call:
                    outcome.firings.append(self._firing(reply, len(steps), "rewrite", _show(call, text), _show(rewritten)))
                    call, proposed = rewritten, _proposed_of(rewritten, proposed)
            elif reply.kind == "block":
                if self._may_block(reply.unit):
                    outcome.firings.append(self._firing(reply, len(steps), "block", _show(call, text), reply.text))
                    return Realized(None, reply.text, tuple(outcome.firings))
                outcome.firings.append(self._firing(reply, len(steps), "let_through", _show(call, text), reply.text))
        return Realized(call, None, tuple(outcome.firings))

    async def regulate(self, *, steps: Sequence[Step], prober: Prober) -> Regulated:
        """Trajectory Regulation: notes on the step just taken (the last of `steps`)."""
        outcome = _Outcome()
        last = steps[-1]
        units = self._units(Layer.TRAJECTORY)
        while units:
            reply = await self._run(
                Layer.TRAJECTORY, units, steps, text=last.text, proposed=last.proposed, call=last.executed, prober=prober
            )
            if reply is None or reply.kind in ("pass", "fault"):
                break
            units = units[units.index(reply.unit) + 1 :]
            if reply.kind == "note":
                outcome.notes.append(reply.text)
                outcome.firings.append(self._firing(reply, last.index, "note", "", reply.text))
            elif reply.kind == "force" and outcome.forced is None:
                outcome.forced = Call(tool=reply.tool, arguments=reply.arguments)
                outcome.firings.append(self._firing(reply, last.index, "force", "", _show(outcome.forced)))
        return Regulated("\n".join(outcome.notes) or None, outcome.forced, tuple(outcome.firings))

    async def close(self) -> None:
        """End the worker."""
        if self._worker is not None:
            await self._worker.close()
