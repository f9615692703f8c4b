"""Drives recorded training episodes through a candidate's rules, without a model and without an environment.

It asks two things: where would the rules fire, and would they have blocked or changed a call that was executed
and useful in a successful episode.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from evolve.harness.artifact import Harness, read_folder, read_harness
from evolve.harness.check import PROPOSAL_FILE, check_files
from evolve.harness.episode import EpisodeHarness
from evolve.harness.runtime import HarnessRuntime
from evolve.harness.worker import Tier, WorkerPool
from evolve.records import Call, Episode, Observation, Step, Tool

MOST_SHOWN = 8


@dataclass
class Replayed:
    """What rules did over recorded episodes."""

    fires_failing: Counter[str] = field(default_factory=Counter)
    fires_successful: Counter[str] = field(default_factory=Counter)
    harm: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


class _Answerless:
    """Stands where the session would: recorded episodes cannot answer a probe that was not made then."""

    def probe(self, call: Call) -> Observation:
        return Observation(text="(no answer: this is a replay)")


async def replay_episodes(
    runtime: HarnessRuntime,
    episodes: Sequence[Episode],
    texts: Mapping[str, str],
    *,
    tools: Sequence[Tool],
    step_limit: int,
) -> Replayed:
    """Drive episodes through a harness and count, per unit, the episodes in which it fires.

    Args:
        texts: task id to task text, by which skills are retrieved.
    """
    seen = Replayed()
    for episode in episodes:
        text = texts[episode.task_id]
        harness = await runtime.begin(episode.opening, tools, task_text=text, step_limit=step_limit)
        try:
            await _replay_one(seen, harness, episode)
        finally:
            await harness.close()
    return seen


async def _replay_one(seen: Replayed, harness: EpisodeHarness, episode: Episode) -> None:
    prober = _Answerless()
    units = {firing.unit for firing in harness.opening_firings}
    admissible = episode.opening.admissible
    for index, step in enumerate(episode.steps):
        before, until = episode.steps[:index], episode.steps[: index + 1]
        if not step.is_forced:
            realized = await harness.realize(
                step.text, step.proposed, steps=before, prober=prober, admissible=admissible
            )
            units |= {firing.unit for firing in realized.firings}
            if episode.is_success and _is_useful(step) and realized.call != step.executed:
                seen.harm.append(_harm(episode, step, realized.call, realized.message))
        admissible = step.observation.admissible or admissible
        if not step.observation.done:
            regulated = await harness.regulate(steps=until, prober=prober, admissible=admissible)
            units |= {firing.unit for firing in regulated.firings}
    seen.faults += [f"{f.unit} at step {f.step + 1} of {episode.task_id}: {f.message}" for f in harness.faults]
    (seen.fires_successful if episode.is_success else seen.fires_failing).update(units)


def _is_useful(step: Step) -> bool:
    return step.executed is not None and step.observation.error_kind is None


def _harm(episode: Episode, step: Step, call: Call | None, message: str | None) -> str:
    done = f"blocked with: {message}" if call is None else f"changed to {call.tool} {call.arguments}"
    assert step.executed is not None
    return (
        f"{episode.task_id} succeeded, and its step {step.index + 1} "
        f"({step.executed.tool} {step.executed.arguments}) would have been {done}."
    )


class Replayer:
    """Answers a proposer that asks, before it proposes, what its rules would do over the episodes it was shown."""

    def __init__(self, *, isolation: Tier, step_limit: int) -> None:
        self._isolation = isolation
        self._step_limit = step_limit
        self._episodes: Sequence[Episode] = ()
        self._texts: Mapping[str, str] = {}
        self._tools: Sequence[Tool] = ()

    def show(self, episodes: Sequence[Episode], texts: Mapping[str, str], tools: Sequence[Tool]) -> None:
        """Take note of the training episodes that the present proposal is made from."""
        self._episodes, self._texts, self._tools = episodes, texts, tools

    def __call__(self, folder: Path) -> str:
        """Replay a harness folder in workers of its own and say what happened. Blocks; call it from a thread."""
        files = {path: content for path, content in read_folder(folder).items() if path != PROPOSAL_FILE}
        if faults := check_files(files):
            return "The folder does not pass the check:\n" + "\n".join(faults)
        return _summary(asyncio.run(self._replay(read_harness(files))), len(self._episodes))

    async def _replay(self, harness: Harness) -> Replayed:
        async with WorkerPool(minimum_tier=self._isolation) as pool:
            runtime = HarnessRuntime(harness, pool)
            return await replay_episodes(
                runtime, self._episodes, self._texts, tools=self._tools, step_limit=self._step_limit
            )


def _summary(seen: Replayed, episodes: int) -> str:
    fired = {
        unit: (seen.fires_failing[unit], seen.fires_successful[unit])
        for unit in sorted(seen.fires_failing | seen.fires_successful)
    }
    lines = [f"{episodes} recorded training episodes replayed."]
    lines += [f"{unit} fires in {bad} failing and {good} successful episodes." for unit, (bad, good) in fired.items()]
    lines += [f"HARM: {line}" for line in seen.harm[:MOST_SHOWN]] + [
        f"FAULT: {line}" for line in seen.faults[:MOST_SHOWN]
    ]
    return "\n".join(lines)
