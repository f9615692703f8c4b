"""Finds what the successful episodes of a task family do in common: their longest common sequence of calls, with
all that differs between tasks masked.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from evolve.classify.masking import schema_of
from evolve.classify.near import plain_words
from evolve.classify.steps import call_of
from evolve.records import Call, Episode, Tool

COMMON_SHARE = 0.8
RARE_SHARE = 0.34
SMALL_WORDS = ("to", "from", "in", "on", "with", "of", "at", "into", "for", "and", "you", "your")
FEWEST_TASKS = 2
FEWEST_STEPS = 2
MOST_WORDS = 8
SHORTEST_WORD = 3


@dataclass(frozen=True, slots=True)
class Procedure:
    """What successful episodes of a family share: masked calls in order, and the words their tasks share."""

    family: str
    steps: tuple[str, ...]
    words: tuple[str, ...]
    tasks: tuple[str, ...]


def find_procedure(
    family: str, successes: Sequence[Episode], tools: Sequence[Tool], *, others: Sequence[Episode] = ()
) -> Procedure | None:
    """Return the common procedure of a family's successful episodes; None below two tasks or two steps.

    Args:
        family: the family's name.
        successes: its successful episodes.
        tools: the tools on offer.
        others: episodes of other families; words that their tasks share too do not tell this family.
    """
    chosen = _one_per_task(successes)
    if len(chosen) < FEWEST_TASKS:
        return None
    ran = [_clean_calls(episode) for episode in chosen]
    common = _telling_words(ran, [_clean_calls(episode) for episode in others if episode.is_success])
    steps = [_without_repeats(_masked_call(call, common, tools) for call in calls) for calls in ran]
    shared = steps[0]
    for other in steps[1:]:
        shared = common_sequence(shared, other)
    shared = _without_repeats(shared)
    if len(shared) < FEWEST_STEPS:
        return None
    words = [word for word in _shared_task_words(chosen) if word not in _shared_task_words(others, RARE_SHARE)]
    return Procedure(family, tuple(shared), tuple(words[:MOST_WORDS]), tuple(e.task_id for e in chosen))


def common_sequence(left: Sequence[str], right: Sequence[str]) -> list[str]:
    """Return the longest common subsequence; among equals the one that keeps `left`'s earliest."""
    longest: list[list[list[str]]] = [[[] for _ in range(len(right) + 1)] for _ in range(len(left) + 1)]
    for i in range(len(left) - 1, -1, -1):
        for j in range(len(right) - 1, -1, -1):
            if left[i] == right[j]:
                longest[i][j] = [left[i], *longest[i + 1][j + 1]]
            else:
                longest[i][j] = max(longest[i][j + 1], longest[i + 1][j], key=len)
    return longest[0][0]


def _one_per_task(episodes: Sequence[Episode]) -> list[Episode]:
    """Return the shortest success of each task, by task."""
    best: dict[str, Episode] = {}
    for episode in sorted(episodes, key=lambda e: (e.task_id, len(e.steps), e.episode_id)):
        best.setdefault(episode.task_id, episode)
    return list(best.values())


def _clean_calls(episode: Episode) -> list[Call]:
    found = ((step, call_of(step)) for step in episode.steps if not step.is_blocked)
    return [call for step, call in found if call is not None and step.observation.error_kind is None]


def _telling_words(ran: Sequence[Sequence[Call]], others: Sequence[Sequence[Call]]) -> frozenset[str]:
    """Return the words in the arguments of nearly all these episodes that are not common here by mere chance.

    A word that some, but not nearly all, episodes of other families have too may be chance.
    """
    here, elsewhere = _word_shares(ran), _word_shares(others)
    return frozenset(
        word
        for word, share in here.items()
        if share >= COMMON_SHARE and not RARE_SHARE < elsewhere.get(word, 0.0) < COMMON_SHARE
    )


def _word_shares(ran: Sequence[Sequence[Call]]) -> dict[str, float]:
    spoken = [{word for call in calls for word in plain_words(str([*call.arguments.values()]))} for calls in ran]
    counts = Counter(word for words in spoken for word in words if not word.isdigit())
    return {word: count / len(ran) for word, count in counts.items()}


def _masked_call(call: Call, common: frozenset[str], tools: Sequence[Tool]) -> str:
    """Return a call as a person would tell it: the words of a single open argument, or tool and parameter names."""
    properties = schema_of(call.tool, tools).get("properties", {})
    if len(call.arguments) == 1 and len(tools) == 1:
        return _masked_phrase(str(next(iter(call.arguments.values()))), common)
    shown = [
        f'{name}="{value}"' if "enum" in properties.get(name, {}) and set(plain_words(str(value))) <= common else name
        for name, value in sorted(call.arguments.items())
    ]
    return f"{call.tool}({', '.join(shown)})"


def _masked_phrase(phrase: str, common: frozenset[str]) -> str:
    told = [word for word in phrase.split() if plain_words(word) and not word.isdigit()]
    kept = {*SMALL_WORDS, *told[:1]}
    words = [word if word in kept or set(plain_words(word)) <= common else "…" for word in told]
    return re.sub(r"…( …)+", "…", " ".join(words))


def _without_repeats(steps: Iterable[str]) -> list[str]:
    kept: list[str] = []
    for step in steps:
        if kept[-1:] != [step]:
            kept.append(step)
    return kept


def _shared_task_words(episodes: Sequence[Episode], share: float = COMMON_SHARE) -> list[str]:
    """Return words that the first messages of at least this share of the tasks have, in order of appearance."""
    spoken = [plain_words(episode.opening.user) for episode in episodes]
    counts = Counter(word for words in spoken for word in set(words))
    shared = (
        word for word in dict.fromkeys(w for words in spoken for w in words) if counts[word] >= share * len(spoken)
    )
    return [word for word in shared if len(word) >= SHORTEST_WORD and not word.isdigit() and word not in SMALL_WORDS]
