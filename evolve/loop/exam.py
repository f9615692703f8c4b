"""The state of one examination: the candidate, the incumbent, and the episodes of both as they come in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from evolve.gate.interval import gain_interval
from evolve.gate.scores import PairedScores, TaskScores, table
from evolve.harness.artifact import Harness, read_harness
from evolve.harness.runtime import HarnessRuntime
from evolve.loop.context import INCUMBENT, Incumbent, RunContext
from evolve.loop.observe import EVIDENCE_TRIAL, offered_tools
from evolve.records import Candidate, Episode, Split, StageResult, Task, Tool
from evolve.rollout import Job
from evolve.store import Purpose

Key = tuple[str, int]


@dataclass
class Exam:
    """What the stages share. Stages add episodes; everything else is derived.

    `alpha` is what one question to the paired test may spend, `alpha_spent` what was; `fresh_trial` is the first trial
    that neither a proposer nor an accept has seen; `removed` are units that the candidate leaves out (None until asked
    for), `units` counts those of incumbent and candidate; `is_simplification` is set once it goes on for being simpler
    and not worse.
    """

    run: RunContext
    candidate: Candidate
    incumbent: Incumbent
    files: Mapping[str, bytes]
    alpha: float
    fresh_trial: int
    alpha_spent: float = 0.0
    removed: frozenset[str] | None = None
    units: tuple[int, int] = (0, 0)
    is_simplification: bool = False
    effect: float | None = None
    interval: tuple[float, float] | None = None
    tested: Mapping[Task, range] = field(default_factory=dict)
    old: dict[Key, Episode] = field(default_factory=dict)
    new: dict[Key, Episode] = field(default_factory=dict)

    @cached_property
    def harness(self) -> Harness:
        """The candidate's harness; reading it may raise HarnessError, which the lint stage reports."""
        return read_harness(self.files)

    @cached_property
    def runtime(self) -> HarnessRuntime:
        """What plays with the candidate's harness."""
        return self.run.runtime_of(self.harness)

    @cached_property
    def tools(self) -> tuple[Tool, ...]:
        """The tools of the environment."""
        return offered_tools(self.run)

    @cached_property
    def pattern_tasks(self) -> set[str]:
        """The tasks that support the pattern which the candidate is made for."""
        found = self.run.ledger.patterns(self.candidate.run_id, self.candidate.number)
        return {t for e in found if e.pattern.pattern_id == self.candidate.proposal.pattern_id for t in e.pattern.tasks}

    async def recorded_training_episodes(self) -> list[Episode]:
        """Return the incumbent's training episodes that the proposal was made from."""
        jobs = [Job(task, EVIDENCE_TRIAL, self.incumbent.runtime, INCUMBENT) for task in self.run.train()]
        return [e for e in await self.run.rollout.roll_out(jobs, Purpose.BASELINE) if e.status == "done"]

    @property
    def candidate_episodes(self) -> list[Episode]:
        """All episodes of the candidate so far, each once."""
        return list({episode.episode_id: episode for episode in self.new.values()}.values())

    async def play(self, trials: Mapping[Task, Iterable[int]], purpose: Purpose) -> None:
        """Roll out both arms on the same tasks and trials, interleaved in time."""
        arms = ((self.incumbent.runtime, INCUMBENT), (self.runtime, self.candidate.candidate_id))
        jobs = [
            Job(task, trial, runtime, arm)
            for task, numbers in trials.items()
            for trial in numbers
            for runtime, arm in arms
        ]
        for job, episode in zip(jobs, await self.run.rollout.roll_out(jobs, purpose), strict=True):
            arm = self.old if job.arm == INCUMBENT else self.new
            arm[(job.task.task_id, job.trial)] = episode

    def scores(self, trials: Mapping[Task, Iterable[int]]) -> PairedScores:
        """Return the paired scores of what was played; an errored episode is a void."""
        return table(self._task_scores(task, list(numbers)) for task, numbers in trials.items())

    def _task_scores(self, task: Task, numbers: list[int]) -> TaskScores:
        return TaskScores(
            task_id=task.task_id,
            family=task.family,
            fold="guard" if task.split is Split.GUARD else "train",
            incumbent=tuple(score_of(self.old[(task.task_id, number)]) for number in numbers),
            candidate=tuple(score_of(self.new[(task.task_id, number)]) for number in numbers),
        )

    def note_effect(self, scores: PairedScores) -> None:
        """Keep the newest estimate of the gain; the verdict reports the last one."""
        interval = gain_interval(scores, run_id=self.run.run_id)
        self.effect, self.interval = round(scores.effect, 6), (round(interval.low, 6), round(interval.high, 6))


def score_of(episode: Episode) -> float | None:
    """Return an episode's score; None where it was not scored, which is a void."""
    return None if episode.score is None else episode.score.value


def passed(stage: str, *reasons: str, **numbers: object) -> StageResult:
    """Return the result of a stage that has nothing against the candidate."""
    return StageResult.model_validate({"stage": stage, "outcome": "pass", "reasons": reasons, "numbers": numbers})


def rejected(stage: str, *reasons: str, **numbers: object) -> StageResult:
    """Return the result of a stage that rejects."""
    return StageResult.model_validate({"stage": stage, "outcome": "reject", "reasons": reasons, "numbers": numbers})
