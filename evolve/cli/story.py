"""An episode told as a story: the task, then each step with what model, harness and environment did."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from difflib import unified_diff
from textwrap import indent

from evolve.figures import count
from evolve.records import Call, Episode, Firing, Step
from evolve.store import EpisodeEntry

LONGEST = 600


def standing_of(entry: EpisodeEntry) -> str:
    """Return how an episode came out in one word."""
    if entry.status == "error":
        return "error"
    return "solved" if entry.success else "failed"


def story(episode: Episode, *, is_full: bool = False) -> str:
    """Return an episode as text; long passages are cut short unless `is_full`."""
    longest = None if is_full else LONGEST
    parts = [
        f"Task {episode.task_id} ({episode.environment}, {episode.split.value}, family {episode.family}), "
        f"trial {episode.trial}, harness {episode.harness[:12]}",
        "",
        _block("system", episode.opening.system, longest),
        _block("user", episode.opening.user, longest),
        *_firing_blocks(episode.opening_firings, longest),
        *(text for step in episode.steps for text in _step(step, longest)),
        "",
        *_ending(episode),
    ]
    return "\n".join(parts)


def _step(step: Step, longest: int | None) -> Iterator[str]:
    yield ""
    yield f"Step {step.index}" + (" (blocked)" if step.is_blocked else "") + (" (forced)" if step.is_forced else "")
    if step.text.strip():
        yield _block("model says", step.text, longest)
    if step.proposed is not None:
        yield _block("model calls", f"{step.proposed.tool} {step.proposed.arguments_text}", longest)
    yield from _firing_blocks(step.firings, longest)
    if step.executed is not None and not _is_as_proposed(step):
        yield _block("was run", _call_text(step.executed), longest)
    kind = step.observation.error_kind
    yield _block(f"answer [{kind.value}]" if kind else "answer", step.observation.text, longest)
    if step.note:
        yield _block("harness adds", step.note, longest)


def _firing_blocks(firings: Iterable[Firing], longest: int | None) -> Iterator[str]:
    for firing in firings:
        head = f"harness: {firing.unit} ({firing.layer.value}, {firing.strength.value}) {firing.effect}"
        yield _block(head, _change(firing.before, firing.after), longest)


def _change(before: str, after: str) -> str:
    """Return what a firing changed: short texts side by side, long ones as the lines that differ."""
    if before == after or not before or not after:
        return after or before
    if "\n" not in before + after:
        return f"{before}\n→ {after}"
    lines = unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm="")
    return "\n".join(line for line in lines if not line.startswith(("---", "+++", "@@")))


def _is_as_proposed(step: Step) -> bool:
    proposed, executed = step.proposed, step.executed
    return (
        proposed is not None
        and executed is not None
        and (proposed.tool, proposed.arguments) == (executed.tool, executed.arguments)
    )


def _call_text(call: Call) -> str:
    return f"{call.tool} {json.dumps(call.arguments, ensure_ascii=False)}"


def _ending(episode: Episode) -> Iterator[str]:
    if episode.score is not None:
        parts = ", ".join(f"{name} {value:g}" for name, value in episode.score.parts.items())
        word = "solved" if episode.score.success else "not solved"
        yield f"Score {episode.score.value:g}: {word}" + (f" ({parts})" if parts else "")
    if episode.error:
        yield f"Not scored: {episode.error}"
    yield from (f"Rule {f.unit} was switched off at step {f.step}: {f.kind}: {f.message}" for f in episode.faults)
    usage = episode.usage
    yield (
        f"Ended by {episode.stop} after {count(len(episode.steps), 'step')}; {count(episode.requests, 'request')} "
        f"({episode.requests_asked} asked), {usage.prompt_tokens + usage.completion_tokens} tokens, "
        f"{episode.wall_s:.1f} s; {count(len(episode.firings), 'firing')}"
    )


def _block(head: str, text: str, longest: int | None) -> str:
    """Return a passage under its head; one line stands beside it."""
    shown = text.strip()
    if longest is not None and len(shown) > longest:
        shown = f"{shown[:longest].rstrip()} … ({len(shown) - longest} more characters; --full shows them)"
    if "\n" not in shown and len(shown) + len(head) < 110:
        return f"  {head}: {shown or '(nothing)'}"
    return f"  {head}:\n{indent(shown, '    ')}"
