"""Writes the evidence folder. Training tasks only: anything of another split is refused before a byte is written."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evolve import rules
from evolve.canaries import Canaries
from evolve.errors import SealError
from evolve.evidence.excerpts import write_excerpt
from evolve.evidence.untrusted import inline
from evolve.harness.artifact import NOTE_CHARACTERS, SKILL_WORDS
from evolve.harness.lint_code import MAX_BYTES, MAX_LINES
from evolve.predictions import PredictionScore
from evolve.prompts import render
from evolve.protocols import EnvironmentCard
from evolve.records import (
    Decision,
    Episode,
    FailureClass,
    FailureLabel,
    Layer,
    ModelFingerprint,
    Pattern,
    Proposal,
    Split,
    Strength,
    Tool,
)

_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,80}")
_ATTEMPTS_IN_BRIEF = 12


@dataclass(frozen=True, slots=True)
class Attempt:
    """A past candidate as the next proposer sees it. `reasons` are the gate's own sentences."""

    candidate_id: str
    proposal: Proposal
    decision: Decision
    reasons: tuple[str, ...] = ()
    predictions: PredictionScore | None = None


@dataclass(frozen=True, slots=True)
class Constraints:
    """What the run fixes and a proposer cannot change.

    Args:
        strength_cap: the strongest outcome that a rule may declare.
        block_cap: blocks per episode and unit; then the call is let through.
        policy: name of the error budget that the gate spends.
        layers: the layers that may be edited in this run.
    """

    strength_cap: Strength = Strength.REWRITE
    block_cap: int = 3
    policy: str = "standard"
    layers: tuple[Layer, ...] = tuple(Layer)


def write_evidence(
    folder: Path,
    *,
    card: EnvironmentCard,
    tools: Sequence[Tool],
    harness_files: Mapping[str, bytes],
    patterns: Sequence[Pattern],
    labels: Sequence[FailureLabel],
    episodes: Sequence[Episode],
    history: Sequence[Attempt],
    constraints: Constraints,
    model: ModelFingerprint | None = None,
    withheld: Collection[str] = (),
    canaries: Canaries | None = None,
    templates: Path | None = None,
) -> None:
    """Write all that a proposer may know.

    Args:
        folder: where to write; made if missing.
        card: the environment.
        tools: the tools on offer to the agent under study.
        harness_files: the parent harness by path in its folder.
        patterns: recurring failures, most promising first.
        labels: of the failed training episodes.
        episodes: training episodes of the incumbent, failed and successful.
        history: past candidates of this environment, oldest first.
        constraints: what the run fixes.
        model: the frozen model; None where it is not known.
        withheld: strings that must not appear, such as guard task ids.
        canaries: looked for in each file.
        templates: folder of prompts that outrank the packaged ones.

    Raises:
        SealError: an episode is not of the training split, a label or pattern belongs to no training
            episode, or a file would have named something withheld. Nothing is written then.
        CanaryFound: a file would have held a canary. Nothing is written then.
    """
    _refuse_other_splits(episodes, labels, patterns)
    files = {
        "rules.py": Path(rules.__file__).read_text("utf-8"),
        "tools.json": _json([{**tool.function_schema(), "read_only": tool.read_only} for tool in tools]),
        "patterns.json": _json([pattern.model_dump(mode="json") for pattern in patterns]),
        "history.json": _json([_attempt(attempt) for attempt in history]),
    }
    for pattern in patterns:
        name = _excerpt_name(pattern)
        files[name] = write_excerpt(pattern, episodes, tools, labels)
    files["brief.md"] = render(
        "brief.md.j2",
        templates=templates,
        card=card,
        tools=tools,
        files=[(path, len(content)) for path, content in sorted(harness_files.items())],
        patterns=[(pattern, _excerpt_name(pattern)) for pattern in patterns],
        classes=[(c.value, n) for c in FailureClass if (n := Counter(x.failure_class for x in labels)[c])],
        episodes=len(episodes),
        tasks=len({episode.task_id for episode in episodes}),
        successes=sum(episode.is_success for episode in episodes),
        history=history[-_ATTEMPTS_IN_BRIEF:],
        older_attempts=max(0, len(history) - _ATTEMPTS_IN_BRIEF),
        constraints=constraints,
        model=model,
        limits={"note": NOTE_CHARACTERS, "skill": SKILL_WORDS, "lines": MAX_LINES, "bytes": MAX_BYTES},
        api_version=rules.API_VERSION,
        inline=inline,
    )
    _refuse_withheld(files, withheld)
    for name, text in files.items():
        (canaries or Canaries({})).refuse(text, f"{name} of the evidence")
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


def _refuse_other_splits(
    episodes: Sequence[Episode], labels: Sequence[FailureLabel], patterns: Sequence[Pattern]
) -> None:
    sealed = [episode for episode in episodes if episode.split is not Split.TRAIN]
    if sealed:
        raise SealError(f"evidence may show training episodes only; one is of the {sealed[0].split} split")
    names = {episode.episode_id for episode in episodes}
    tasks = {episode.task_id for episode in episodes}
    for label in labels:
        if label.episode_id not in names:
            raise SealError("a failure label belongs to none of the training episodes")
    for pattern in patterns:
        if not tasks.issuperset(pattern.tasks) or not names.issuperset(pattern.episodes):
            raise SealError(
                f"pattern {pattern.pattern_id} names a task or an episode that is not of the training split"
            )


def _refuse_withheld(files: Mapping[str, str], withheld: Collection[str]) -> None:
    pattern = re.compile("|".join(rf"(?<!\w){re.escape(text)}(?!\w)" for text in withheld if text) or r"(?!)")
    for name, text in files.items():
        if pattern.search(text):
            raise SealError(f"{name} would have named something that the proposer must not know")


def _attempt(attempt: Attempt) -> dict[str, Any]:
    return {
        "candidate_id": attempt.candidate_id,
        "proposal": attempt.proposal.model_dump(mode="json"),
        "decision": attempt.decision.value,
        "reasons": list(attempt.reasons),
        "predictions": attempt.predictions.model_dump(mode="json") if attempt.predictions else None,
    }


def _excerpt_name(pattern: Pattern) -> str:
    """Return where a pattern's page lies. An id comes from a digest; anything else must not steer a path."""
    if not _FILE_NAME.fullmatch(pattern.pattern_id):
        raise SealError(f"{pattern.pattern_id!r} is no name for a file")
    return f"patterns/{pattern.pattern_id}.md"


def _json(value: object) -> str:
    """Return JSON in ASCII, so that control and invisible characters stand there as escapes."""
    return json.dumps(value, indent=1, ensure_ascii=True) + "\n"
