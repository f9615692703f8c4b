"""What the training tasks say, prepared so that a literal leads to the one task that it occurs in. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

PHRASE_WORDS = 6
"""This many words in a row that stand in one task's text only are a copy of it."""

_FUNCTION_WORDS = """
    a about above after again all also an and any are as at be because been before below but by can could do does done
    each else ever every false few first for from get give had has have he her here him his how i if in into is it
    its just last least less let made make many may me more most much must my need never new next no none nor not now
    null of off old on once one only or other our out over own per put said same say second see she should since so some
    still stop such take than that the their them then there these they third this those three time too true try two
    under until up use used very was way we well were what when where which while who whose why will with would yes yet
    you your january february march april june july august september october november december monday tuesday wednesday
    thursday friday saturday sunday"""
FUNCTION_WORDS = frozenset(_FUNCTION_WORDS.split())
"""Words so common that their occurrence in a task says nothing."""

_PART = re.compile(r"[^\W_]+")
_TOKEN = re.compile(r"[^\W_]+(?:[-_.@/:][^\W_]+)*")
_NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?!\w)")
_NUMBERED = re.compile(r"(?<![^\W_])([^\W\d_]{2,})[ _#-]*(\d+)(?![^\W_])")
_PROPER = re.compile(r"(?<=[\w,;] )[A-Z][a-z]{2,}\b")

Words = tuple[str, ...]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TaskCorpus:
    """The texts that a leak is measured against. Training tasks only: findings are shown to proposers.

    Args:
        tasks: task id to the text that the agent is told.
        traces: task id to whatever else was seen in its episodes (observations, calls).
        common: tool schemas, system prompts, the environment's description.
        gold: task id to reference answers, where the environment gives them.
    """

    tasks: Mapping[str, str]
    traces: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    common: tuple[str, ...] = ()
    gold: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CorpusIndex:
    """Literals in normal form, each with the only task that it occurs in; `shared` occur in more than one place."""

    task_ids: Mapping[str, re.Pattern[str]]
    gold: Mapping[Words, str]
    marks: Mapping[str, str]
    names: Mapping[str, str]
    words: Mapping[str, str]
    phrases: Mapping[Words, str]
    shared: frozenset[str]
    tasks: Mapping[str, str]


def index_corpus(corpus: TaskCorpus) -> CorpusIndex:
    """Prepare a corpus for look-up."""
    texts = {task: (text,) for task, text in corpus.tasks.items()}
    for task, traces in corpus.traces.items():
        texts[task] = (*texts.get(task, ()), *traces)
    lines = {task: frozenset(line for text in several for line in text.splitlines()) for task, several in texts.items()}
    everything = frozenset(corpus.common).union(*lines.values())
    lower_case = {word for text in everything for word in _PART.findall(text) if word.islower()}
    places = _places(lines, marks_in)
    common_marks = {mark for text in corpus.common for mark in marks_in(text)}
    return CorpusIndex(
        task_ids={task: pattern for task in texts if (pattern := _id_pattern(task, lower_case))},
        gold=_gold(corpus, texts),
        marks=_single(places, common_marks),
        names=_single(_places(lines, names_in), _words_of(corpus.common) | lower_case | FUNCTION_WORDS),
        words=_single(_places(lines, words_in), _words_of(corpus.common) | FUNCTION_WORDS),
        phrases=_single(
            _places({task: (text,) for task, text in corpus.tasks.items()}, phrases_in),
            {phrase for text in corpus.common for phrase in phrases_in(text)},
        ),
        shared=frozenset(common_marks | {mark for mark, task in places.items() if task is None}),
        tasks=corpus.tasks,
    )


def marks_in(text: str) -> Iterator[str]:
    """Yield what identifies a thing: tokens of letters and digits, numbers of three digits, "word 7"."""
    for token in _TOKEN.findall(text):
        for piece in {token, *_PART.findall(token)}:
            if len(piece) >= 3 and any(c.isdigit() for c in piece) and any(c.isalpha() for c in piece):
                yield piece.lower()
    for number in _NUMBER.findall(text):
        if is_telling(normal_number(number)):
            yield normal_number(number)
    for word, number in _NUMBERED.findall(text):
        if word.lower() not in FUNCTION_WORDS:
            yield f"{word.lower()} {int(number)}"


def names_in(text: str) -> Iterator[str]:
    """Yield words that are written with a capital within a sentence, in lower case."""
    return (name.lower() for name in _PROPER.findall(text))


def words_in(text: str) -> Iterator[str]:
    """Yield words of at least four letters, in lower case."""
    return (word.lower() for word in _PART.findall(text) if len(word) >= 4 and word.isalpha())


def phrases_in(text: str) -> Iterator[Words]:
    """Yield each run of PHRASE_WORDS words, in lower case."""
    words = parts(text)
    return (words[i : i + PHRASE_WORDS] for i in range(len(words) - PHRASE_WORDS + 1))


def parts(text: str) -> Words:
    """Return the words and numbers of a text in lower case."""
    return tuple(part.lower() for part in _PART.findall(text))


def normal_number(number: str) -> str:
    """Return a decimal number without grouping and trailing zeros."""
    plain = number.replace(",", "")
    return plain.rstrip("0").rstrip(".") if "." in plain else plain


def is_telling(number: str) -> bool:
    """Tell whether a number in normal form can give something away: three digits, and not a round one."""
    digits = number.replace(".", "").lstrip("0")
    return len(digits) >= 3 and digits.rstrip("0") not in "123456789"


def contains(words: Words, wanted: Words) -> bool:
    """Tell whether `wanted` stands in `words` as a run."""
    return any(words[i : i + len(wanted)] == wanted for i in range(len(words) - len(wanted) + 1))


def _places(texts: Mapping[str, Iterable[str]], literals_in: Callable[[str], Iterable[T]]) -> dict[T, str | None]:
    """Map each literal to its task, or to None where several tasks have it."""
    places: dict[T, str | None] = {}
    read: dict[str, frozenset[T]] = {}  # traces repeat themselves: each text is taken apart once
    for task, several in texts.items():
        for text in several:
            if text not in read:
                read[text] = frozenset(literals_in(text))
        for literal in frozenset[T]().union(*(read[text] for text in several)):
            places[literal] = None if literal in places else task
    return places


def _single(places: Mapping[T, str | None], common: Iterable[T]) -> dict[T, str]:
    known = frozenset(common)
    return {literal: task for literal, task in places.items() if task is not None and literal not in known}


def _words_of(texts: Iterable[str]) -> set[str]:
    return {part for text in texts for part in parts(text)}


def _id_pattern(task: str, lower_case: set[str]) -> re.Pattern[str] | None:
    """Return a pattern for a task id however its parts are separated; None where the id is an ordinary word."""
    pieces = _PART.findall(task)
    if sum(map(len, pieces)) < 4 or (len(pieces) == 1 and task.lower() in lower_case):
        return None
    joined = r"[\W_]*".join(re.escape(piece) for piece in pieces)
    return re.compile(rf"(?<![^\W_]){joined}(?![^\W_])", re.IGNORECASE)


def _gold(corpus: TaskCorpus, texts: Mapping[str, tuple[str, ...]]) -> dict[Words, str]:
    places = _places(corpus.gold, lambda value: [parts(value)])
    common = " ".join(" ".join(parts(text)) for text in corpus.common)
    seen = {task: " ".join(" ".join(parts(text)) for text in several) for task, several in texts.items()}
    return {
        value: task
        for value, task in _single(places, ()).items()
        if _is_specific(value)
        and f" {' '.join(value)} " not in f" {common} "
        and not any(f" {' '.join(value)} " in f" {text} " for other, text in seen.items() if other != task)
    }


def _is_specific(value: Words) -> bool:
    text = "".join(value)
    if text.isdigit():
        return is_telling(text)
    return len(text) >= 4 and not (len(value) == 1 and text in FUNCTION_WORDS)
