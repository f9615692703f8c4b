"""A harness with the run's switches, ready to begin episodes.

Off is identical: without an active unit every text and tool passes through unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from evolve.harness.artifact import RULE_FILES, Harness, Skill
from evolve.harness.episode import EpisodeHarness
from evolve.harness.skills import SkillIndex
from evolve.harness.worker import StartingWorker, WorkerPool, opening_json
from evolve.records import Layer, Opening, Strength, Tool, digest_of

OFF = "off"


class HarnessRuntime:
    """What one arm plays with.

    Args:
        harness: None plays without one.
        pool: where rules run; None only where the harness has no active rules.
        cap: the strongest outcome that any unit may have.
        off: ids of units, or names of layers, that are switched off.
    """

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
        self._sources = self._active_sources()

    @cached_property
    def digest(self) -> str:
        """Digest of what is active; 'off' where no unit can fire, so that equal behaviour shares episodes."""
        if self.harness is None or not (self._has_active_text() or self._sources):
            return OFF
        return digest_of([self.harness.digest, self.cap.value, sorted(self.off)])

    async def begin(
        self, opening: Opening, tools: Sequence[Tool], *, task_text: str, step_limit: int
    ) -> EpisodeHarness:
        """Apply the two layers that act before the episode, and load the rules where there are any."""
        episode = self.prepare(opening, tools, task_text=task_text, step_limit=step_limit)
        try:
            await episode.ready()
        except BaseException:
            await episode.close()
            raise
        return episode

    def prepare(self, opening: Opening, tools: Sequence[Tool], *, task_text: str, step_limit: int) -> EpisodeHarness:
        """Do the same without waiting for the rules, whose worker starts meanwhile in the running event loop."""
        episode = EpisodeHarness(self, opening, tools, step_limit)
        if self.harness is None:
            return episode
        episode.apply_contract(self.harness.contract)
        limits = self.harness.settings.limits
        found = self._skills.retrieve(task_text, top_k=limits.skills_top_k, min_score=limits.skills_min_score)
        episode.apply_skills(found)
        if self._sources and self._pool is not None:
            start = self._pool.start_episode(self._sources, opening_json(task_text, tools, step_limit))
            episode.attach(StartingWorker(start))
        return episode

    @property
    def block_cap(self) -> int:
        """Blocks per episode and unit."""
        return self.harness.settings.limits.block_cap if self.harness else 0

    def is_on(self, unit: str, layer: Layer) -> bool:
        """Tell whether a unit may fire under this run's switches."""
        return self.harness is not None and self.harness.is_on(unit, layer, self.off)

    def _has_active_text(self) -> bool:
        return self.harness is not None and any(self.is_on(unit, layer) for unit, layer in self.harness.text_units())

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
