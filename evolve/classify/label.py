"""Gives each failed episode one label: the earliest class with a signal from which the episode did not recover."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from evolve.classify.signals import Signal, find_signals
from evolve.classify.steps import call_of
from evolve.records import Episode, FailureClass, FailureLabel, Tool

Judge = Callable[[Episode, Sequence[Tool]], FailureClass | None]

DOMINATES = 0.5
RECOVERABLE = (FailureClass.ACTION, FailureClass.CONTRACT)
BOUNDARY = (FailureClass.CONTRACT, FailureClass.REASONING)


def label_failure(episode: Episode, tools: Sequence[Tool], judge: Judge | None = None) -> FailureLabel:
    """Label a failed episode; the classes are tried in order and the first match wins.

    Args:
        episode: one that was scored below the pass mark.
        tools: the tools that it was offered.
        judge: asked where the label would be `contract` or `reasoning`, for the boundary between these two only;
            None, or an answer of any other class, leaves the label as the signals gave it.

    Raises:
        ValueError: the episode is a success, or was never scored.
    """
    if episode.score is None or episode.is_success:
        raise ValueError(f"episode {episode.episode_id} is no failure; only failures have labels")
    label = _label_by_signal(episode, find_signals(episode, tools))
    if judge is None or label.failure_class not in BOUNDARY:
        return label
    judged = judge(episode, tools)
    if judged not in BOUNDARY:
        return label
    changes: dict[str, object] = {"failure_class": judged, "judged_by": "judge"}
    if judged is not label.failure_class:
        changes["signature"] = f"judged:{judged.value}"
    return label.model_copy(update=changes)


def class_counts(labels: Sequence[FailureLabel]) -> dict[FailureClass, int]:
    """Count labels by class; every class is there, in the order in which classes are tried."""
    counts = Counter(label.failure_class for label in labels)
    return {failure_class: counts[failure_class] for failure_class in FailureClass}


def _label_by_signal(episode: Episode, signals: Sequence[Signal]) -> FailureLabel:
    for failure_class in FailureClass:
        decisive = _decisive([s for s in signals if s.failure_class is failure_class], episode)
        if decisive is not None:
            return _label(episode, failure_class, decisive)
    last = episode.steps[-1].index if episode.steps else 0
    return _label(episode, FailureClass.REASONING, Signal("wrong_result", "", last))


def _decisive(signals: Sequence[Signal], episode: Episode) -> Signal | None:
    """Return the first signal that the episode did not recover from; where they dominate it, the most frequent one."""
    if not signals or signals[0].failure_class not in RECOVERABLE:
        return next(iter(signals), None)
    if len({signal.step for signal in signals}) >= DOMINATES * len(episode.steps):
        frequent = Counter(signal.signature for signal in signals).most_common(1)[0][0]
        return next(signal for signal in signals if signal.signature == frequent)
    by_step = sorted(signals, key=lambda signal: signal.step)
    return next((signal for signal in by_step if not _is_recovered(signal, episode)), None)


def _is_recovered(signal: Signal, episode: Episode) -> bool:
    """Say whether a later call did what was meant: the same tool ran clean, with the near value where one is known."""
    tool, near, argument = (signal.detail.get(name) for name in ("tool", "near", "argument"))
    is_value = signal.kind in ("outside_enum", "outside_pattern", "not_admissible") and near is not None
    if signal.kind == "closed_early":
        return False
    if signal.kind == "not_admissible" and near is None:
        return True  # what was meant is not known: it counts only where such calls dominate the episode
    for step in episode.steps[signal.step + 1 :]:
        call = call_of(step)
        if call is None or step.is_blocked or step.observation.error_kind is not None or tool not in (None, call.tool):
            continue
        if not is_value or call.arguments.get(str(argument)) == near:
            return True
    return False


def _label(episode: Episode, failure_class: FailureClass, signal: Signal) -> FailureLabel:
    return FailureLabel(
        episode_id=episode.episode_id,
        task_id=episode.task_id,
        failure_class=failure_class,
        signature=signal.signature,
        step=signal.step,
        detail=signal.detail,
    )
