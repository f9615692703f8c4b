"""Writes the evidence folder. Training tasks only: anything of another split is refused before a byte is written."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from evolve import rules
from evolve.canaries import Canaries
from evolve.errors import SealError
from evolve.evidence.contents import Attempt, Evidence
from evolve.evidence.excerpts import write_excerpt
from evolve.evidence.untrusted import inline
from evolve.harness.artifact import NOTE_CHARACTERS, SKILL_WORDS
from evolve.harness.lint_code import MAX_BYTES, MAX_LINES
from evolve.prompts import render
from evolve.records import FailureClass, Pattern, Split

_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,80}")
_ATTEMPTS_IN_BRIEF = 12


def write_evidence(
    folder: Path,
    evidence: Evidence,
    *,
    withheld: Collection[str] = (),
    canaries: Canaries | None = None,
    templates: Path | None = None,
) -> None:
    """Write what a proposer may know; all of it, or nothing.

    Args:
        folder: where to write; made if missing.
        withheld: strings that must not appear, such as guard task ids.
        canaries: looked for in each file.
        templates: folder of prompts that outrank the packaged ones.

    Raises:
        SealError: an episode is not of the training split, a label or pattern belongs to no training
            episode, or a file would have named something withheld.
        CanaryFound: a file would have held a canary.
    """
    _refuse_other_splits(evidence)
    files = _files(evidence, templates)
    _refuse_withheld(files, withheld)
    for name, text in files.items():
        (canaries or Canaries({})).refuse(text, f"{name} of the evidence")
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


def _files(evidence: Evidence, templates: Path | None) -> dict[str, str]:
    """Return the text of each file by its path in the folder."""
    tools = [{**tool.function_schema(), "read_only": tool.read_only} for tool in evidence.tools]
    excerpts = {
        _excerpt_name(pattern): write_excerpt(pattern, evidence.episodes, evidence.tools, evidence.labels)
        for pattern in evidence.patterns
    }
    return {
        "rules.py": Path(rules.__file__).read_text("utf-8"),
        "tools.json": _json(tools),
        "patterns.json": _json([pattern.model_dump(mode="json") for pattern in evidence.patterns]),
        "history.json": _json([_attempt(attempt) for attempt in evidence.history]),
        **excerpts,
        "brief.md": _brief(evidence, templates),
    }


def _brief(evidence: Evidence, templates: Path | None) -> str:
    numbers = Counter(label.failure_class for label in evidence.labels)
    return render(
        "brief.md.j2",
        templates=templates,
        card=evidence.card,
        tools=evidence.tools,
        files=[(path, len(content)) for path, content in sorted(evidence.harness_files.items())],
        patterns=[(pattern, _excerpt_name(pattern)) for pattern in evidence.patterns],
        classes=[(name.value, numbers[name]) for name in FailureClass if numbers[name]],
        episodes=len(evidence.episodes),
        tasks=len({episode.task_id for episode in evidence.episodes}),
        successes=sum(episode.is_success for episode in evidence.episodes),
        history=evidence.history[-_ATTEMPTS_IN_BRIEF:],
        older_attempts=max(0, len(evidence.history) - _ATTEMPTS_IN_BRIEF),
        constraints=evidence.constraints,
        model=evidence.model,
        limits={"note": NOTE_CHARACTERS, "skill": SKILL_WORDS, "lines": MAX_LINES, "bytes": MAX_BYTES},
        api_version=rules.API_VERSION,
        inline=inline,
    )


def _refuse_other_splits(evidence: Evidence) -> None:
    sealed = [episode for episode in evidence.episodes if episode.split is not Split.TRAIN]
    if sealed:
        raise SealError(f"evidence may show training episodes only; one is of the {sealed[0].split} split")
    names = {episode.episode_id for episode in evidence.episodes}
    tasks = {episode.task_id for episode in evidence.episodes}
    for label in evidence.labels:
        if label.episode_id not in names:
            raise SealError("a failure label belongs to none of the training episodes")
    for pattern in evidence.patterns:
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
