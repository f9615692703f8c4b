"""Groups the signals of failed episodes into patterns: signatures that at least two distinct tasks share."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from evolve.classify.excerpt import excerpt_of
from evolve.classify.procedures import Procedure, find_procedure
from evolve.classify.signals import Signal, find_signals
from evolve.classify.steps import admissible_before
from evolve.records import Episode, FailureClass, FailureLabel, Json, Pattern, Tool, digest_of

FEWEST_TASKS = 2
MOST_EXAMPLES = 5
ID_LENGTH = 12


@dataclass(frozen=True, slots=True)
class Sighting:
    """A signal and the episode it was found in."""

    episode: Episode
    signal: Signal


def find_patterns(
    failed: Sequence[Episode],
    successes: Sequence[Episode],
    tools: Sequence[Tool],
    *,
    environment: str,
    labels: Sequence[FailureLabel] = (),
) -> tuple[Pattern, ...]:
    """Find the recurring patterns of failed training episodes, most promising first.

    All signals of the failed episodes count, not only those that gave a label. The order depends on the
    episodes alone, not on the order in which they are given.

    Args:
        failed: failed training episodes.
        successes: successful training episodes; they give counter-support and procedures.
        tools: the tools on offer.
        environment: part of a pattern's id, so that ids are stable between runs.
        labels: of the failed episodes; each pattern then says how many labels it accounts for.
    """
    failed, successes = _in_order(failed), _in_order(successes)
    seen_good = _sightings(successes, tools)
    grouped = _sightings(failed, tools)
    closing = _closing_tool(successes, tools)
    patterns = [
        _pattern(signature, sightings, seen_good.get(signature, []), environment=environment, closing=closing)
        for signature, sightings in grouped.items()
    ]
    patterns += _procedure_patterns(failed, successes, tools, environment=environment, labels=labels)
    labelled = Counter(label.signature for label in labels)
    counted = (_with_labels(p, labelled[p.signature]) for p in patterns if len(p.tasks) >= FEWEST_TASKS)
    return tuple(sorted(counted, key=_promise))


def pattern_id(environment: str, signature: str) -> str:
    """Name a pattern by environment and signature: the same in every run."""
    return f"p-{digest_of([environment, signature])[:ID_LENGTH]}"


def _promise(pattern: Pattern) -> tuple[float, int, int, str]:
    """Order by support weighed by how rarely successes match too, then by class, then by counter-support."""
    support = len(pattern.tasks)
    weight = support * support / (support + pattern.counter_support)
    return -weight, list(FailureClass).index(pattern.failure_class), pattern.counter_support, pattern.signature


def _in_order(episodes: Sequence[Episode]) -> list[Episode]:
    return sorted(episodes, key=lambda episode: (episode.task_id, episode.trial, episode.episode_id))


def _sightings(episodes: Sequence[Episode], tools: Sequence[Tool]) -> dict[str, list[Sighting]]:
    grouped: dict[str, list[Sighting]] = defaultdict(list)
    for episode in episodes:
        for signal in find_signals(episode, tools):
            grouped[signal.signature].append(Sighting(episode, signal))
    return grouped


def _pattern(
    signature: str, sightings: Sequence[Sighting], good: Sequence[Sighting], *, environment: str, closing: str | None
) -> Pattern:
    first = sightings[0]
    return Pattern(
        pattern_id=pattern_id(environment, signature),
        environment=environment,
        failure_class=first.signal.failure_class,
        signature=signature,
        title=_title(first.signal),
        tasks=tuple(sorted({s.episode.task_id for s in sightings})),
        counter_support=len({s.episode.episode_id for s in good}),
        detail=_detail(sightings, good, closing),
        excerpt=excerpt_of(first.episode, first.signal.step),
        episodes=tuple(sorted({s.episode.episode_id for s in sightings})),
    )


def _title(signal: Signal) -> str:
    kind = signal.kind.replace("_", " ").capitalize()
    return f"{kind}: {signal.key}" if signal.key else kind


def _detail(sightings: Sequence[Sighting], good: Sequence[Sighting], closing: str | None) -> Json:
    first = sightings[0].signal
    details = [s.signal.detail for s in sightings]
    values = Counter(str(d["value"]) for d in details if "value" in d)
    texts = {d["text"] for d in details if "text" in d}
    merged: Json = {
        "kind": first.kind,
        "count": len(sightings),
        "values": [value for value, _ in sorted(values.items(), key=lambda i: (-i[1], i[0]))[:MOST_EXAMPLES]],
        "counter_tasks": sorted({s.episode.task_id for s in good}),
        "has_actions": any(admissible_before(s.episode, s.signal.step) is not None for s in sightings),
    }
    merged |= {name: first.detail[name] for name in ("tool", "argument", "choices") if first.detail.get(name)}
    merged["tools"] = sorted({str(d["tool"]) for d in details if d.get("tool")})
    if texts:
        merged["text"] = texts.pop() if len(texts) == 1 else first.detail.get("masked", first.detail["text"])
    if first.kind == "budget_gone" and closing is not None:
        merged["closing_tool"] = closing
        merged["unclosed"] = sum(not any(_calls(s.episode, closing)) for s in sightings)
    return merged


def _calls(episode: Episode, tool: str) -> Iterator[bool]:
    return (step.executed is not None and step.executed.tool == tool for step in episode.steps)


def _closing_tool(successes: Sequence[Episode], tools: Sequence[Tool]) -> str | None:
    """Return the tool that ends most successful episodes, where it is one of several tools."""
    last = Counter(e.steps[-1].executed.tool for e in successes if e.steps and e.steps[-1].executed)
    if len(tools) < 2 or not last:
        return None
    tool, count = min(last.items(), key=lambda item: (-item[1], item[0]))
    return tool if 2 * count > len(successes) else None


def _procedure_patterns(
    failed: Sequence[Episode],
    successes: Sequence[Episode],
    tools: Sequence[Tool],
    *,
    environment: str,
    labels: Sequence[FailureLabel],
) -> Iterator[Pattern]:
    for family in sorted({episode.family for episode in failed}):
        others = [e for e in (*failed, *successes) if e.family != family]
        procedure = find_procedure(family, [e for e in successes if e.family == family], tools, others=others)
        mine = [e for e in failed if e.family == family]
        if procedure is not None:
            yield _procedure_pattern(procedure, mine, environment, _common_class(mine, labels))


def _procedure_pattern(procedure: Procedure, failed: Sequence[Episode], environment: str, of: FailureClass) -> Pattern:
    signature = f"procedure:{procedure.family}"
    return Pattern(
        pattern_id=pattern_id(environment, signature),
        environment=environment,
        failure_class=of,
        signature=signature,
        title=f"Procedure that successes share: {procedure.family}",
        tasks=tuple(sorted({e.task_id for e in failed})),
        counter_support=0,
        detail={
            "kind": "procedure",
            "family": procedure.family,
            "steps": list(procedure.steps),
            "words": list(procedure.words),
            "successful_tasks": len(procedure.tasks),
            "counter_tasks": list(procedure.tasks),
        },
        excerpt="\n".join(f"{number}. {step}" for number, step in enumerate(procedure.steps, 1)),
        episodes=tuple(sorted(e.episode_id for e in failed)),
    )


def _common_class(failed: Sequence[Episode], labels: Sequence[FailureLabel]) -> FailureClass:
    """Return the class that most of these failures are labelled with, reasoning aside; trajectory where none is."""
    names = {episode.episode_id for episode in failed}
    counts = Counter(label.failure_class for label in labels if label.episode_id in names)
    classes = [c for c in FailureClass if c is not FailureClass.REASONING and counts[c]]
    return max(classes, key=lambda c: counts[c]) if classes else FailureClass.TRAJECTORY


def _with_labels(pattern: Pattern, labelled: int) -> Pattern:
    return pattern.model_copy(update={"detail": {**pattern.detail, "labelled": labelled}})
