"""Looks at the incumbent: rolls it out on the training tasks and finds the patterns in its failures."""

from __future__ import annotations

from dataclasses import dataclass

from evolve.classify.label import class_counts, label_failure
from evolve.classify.patterns import find_patterns
from evolve.loop.context import INCUMBENT, Incumbent, RunContext
from evolve.records import Episode, FailureClass, FailureLabel, Pattern, Tool
from evolve.rollout import Job
from evolve.store import Purpose

EVIDENCE_TRIAL = 0
"""The trial whose traces the proposer sees. Tests of a sampled model use later ones, so that no score is used twice."""


@dataclass(frozen=True)
class Findings:
    """What was seen of the incumbent on the training tasks."""

    episodes: tuple[Episode, ...]
    labels: tuple[FailureLabel, ...]
    patterns: tuple[Pattern, ...]
    tools: tuple[Tool, ...]

    @property
    def failed(self) -> tuple[Episode, ...]:
        """Scored below the pass mark."""
        return tuple(e for e in self.episodes if e.status == "done" and not e.is_success)

    @property
    def successes(self) -> tuple[Episode, ...]:
        """Scored at the pass mark or above."""
        return tuple(e for e in self.episodes if e.is_success)

    @property
    def class_counts(self) -> dict[FailureClass, int]:
        """Failures by class."""
        return class_counts(self.labels)


async def observe(run: RunContext, incumbent: Incumbent, number: int) -> Findings:
    """Roll the incumbent out on the training tasks, label what failed and keep the patterns in the ledger."""
    jobs = [Job(task, EVIDENCE_TRIAL, incumbent.runtime, INCUMBENT) for task in run.train()]
    episodes = tuple(await run.rollout.roll_out(jobs, Purpose.BASELINE))
    tools = offered_tools(run)
    failed = [e for e in episodes if e.status == "done" and not e.is_success]
    successes = [e for e in episodes if e.is_success]
    labels = tuple(label_failure(episode, tools) for episode in failed)
    patterns = find_patterns(failed, successes, tools, environment=run.name, labels=labels)
    run.ledger.save_patterns(run.run_id, number, patterns)
    findings = Findings(episodes, labels, patterns, tools)
    counts = ", ".join(f"{count} {name.value}" for name, count in findings.class_counts.items())
    run.say(f"iteration {number}: {len(successes)} of {len(episodes)} solved; failures: {counts}")
    return findings


def offered_tools(run: RunContext) -> tuple[Tool, ...]:
    """Return the tools of the environment, as its first training task offers them."""
    session = run.environment.open(run.train()[0], EVIDENCE_TRIAL)
    try:
        return tuple(session.tools)
    finally:
        session.close()
