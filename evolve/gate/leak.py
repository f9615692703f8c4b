"""The leak lint: finds in a patch what belongs to one training task instead of to the environment.

A harness may say what holds for many tasks. What a patch adds that occurs in exactly one training task,
and in no tool schema or system prompt, cannot carry over and may be an answer. Words of the domain pass:
they are in the common texts, in two tasks or more, or plain words outside comparisons.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from evolve.gate.added_text import Fragment, added_fragments
from evolve.gate.corpus import (
    CorpusIndex,
    TaskCorpus,
    contains,
    index_corpus,
    is_telling,
    marks_in,
    normal_number,
    parts,
    phrases_in,
    words_in,
)

__all__ = ["Leak", "TaskCorpus", "find_leaks"]

LeakKind = Literal["task_id", "gold", "literal", "phrase", "opaque"]

_HEX = re.compile(r"\b(?=[0-9a-f]*[a-f])(?=[0-9a-f]*\d)[0-9a-f]{8,}\b", re.IGNORECASE)
_BASE64 = re.compile(r"(?<![\w+/=-])[\w+/-]{8,}={0,2}(?![\w+/=-])", re.ASCII)
_CAPITALISED = re.compile(r"\b[A-Z][a-z]{2,}\b")
_OPAQUE_HEX, _OPAQUE_BASE64, _OPAQUE_DIGITS, _OPAQUE_TABLE = 16, 24, 10, 4
_SHORT_LITERAL = 5
_HASHES = ("md5", "sha1", "sha256")
_PROSE = ("text", "comment", "string", "glued", "name")


@dataclass(frozen=True, slots=True)
class Leak:
    """One finding. `task_id` is None where a literal is only suspicious by its shape."""

    kind: LeakKind
    literal: str
    task_id: str | None
    file: str
    line: int
    explanation: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.explanation}"


def find_leaks(before: Mapping[str, bytes], after: Mapping[str, bytes], corpus: TaskCorpus) -> tuple[Leak, ...]:
    """Find what a patch added that gives a single training task away.

    Args:
        before: files of the parent harness, by path relative to its folder.
        after: files of the candidate.
        corpus: texts of the training tasks. Never hand in guard or held-out tasks: findings are shown to proposers.
    """
    index = index_corpus(corpus)
    found: dict[tuple[str, int, str], Leak] = {}
    for fragment in added_fragments(before, after):
        for leak in _leaks_in(fragment, index):
            found.setdefault((leak.file, leak.line, leak.literal.lower()), leak)
    return tuple(sorted(found.values(), key=lambda leak: (leak.file, leak.line, leak.kind, leak.literal)))


def _leaks_in(fragment: Fragment, index: CorpusIndex) -> Iterator[Leak]:
    if fragment.kind in _PROSE:
        yield from _readable(fragment, index)
        yield from _disguised(fragment, index)
    elif fragment.kind == "compared":
        yield from _compared(fragment, index)
    elif fragment.kind == "number":
        yield from _number(fragment, index)
    elif fragment.kind == "table":
        if len(fragment.text.split()) >= _OPAQUE_TABLE:
            yield _leak("opaque", fragment, fragment.text[:60], None, "a table of large numbers that nobody can review")
    else:
        yield _leak("opaque", fragment, fragment.file, None, fragment.text)


def _readable(fragment: Fragment, index: CorpusIndex) -> Iterator[Leak]:
    """Find ids, answers, marks, names and copied phrases in text as it stands."""
    text = fragment.text
    words = parts(text)
    for task, pattern in index.task_ids.items():
        if match := pattern.search(text):
            yield _leak("task_id", fragment, match.group(), task, f"names the training task {task}")
    for value, task in index.gold.items():
        if contains(words, value):
            literal = " ".join(value)
            yield _leak("gold", fragment, literal, task, f"'{literal}' is a reference answer of training task {task}")
    for mark in marks_in(text):
        if mark in index.marks:
            yield _only(fragment, mark, index.marks[mark])
    if fragment.kind in ("text", "comment", "string"):
        for name in _CAPITALISED.findall(text):
            if name.lower() in index.names:
                yield _only(fragment, name, index.names[name.lower()])
        yield from _phrases(fragment, index)


def _phrases(fragment: Fragment, index: CorpusIndex) -> Iterator[Leak]:
    seen: set[str] = set()
    for phrase in phrases_in(fragment.text):
        task = index.phrases.get(phrase)
        if task is not None and task not in seen:
            seen.add(task)
            literal = " ".join(phrase)
            yield _leak("phrase", fragment, literal, task, f"'{literal} ...' is copied from training task {task}")


def _compared(fragment: Fragment, index: CorpusIndex) -> Iterator[Leak]:
    """Find plain words that code tests for although only one training task has them."""
    if len(parts(fragment.text)) > _SHORT_LITERAL:
        return
    for word in words_in(fragment.text):
        if word in index.words:
            yield _only(fragment, word, index.words[word])
    for word in parts(fragment.text):
        if word in index.names:
            yield _only(fragment, word, index.names[word])


def _number(fragment: Fragment, index: CorpusIndex) -> Iterator[Leak]:
    number = normal_number(fragment.text)
    if (number,) in index.gold:
        task = index.gold[(number,)]
        yield _leak("gold", fragment, number, task, f"{number} is a reference answer of training task {task}")
    elif number in index.marks and is_telling(number):
        yield _only(fragment, number, index.marks[number])
    elif len(number) >= _OPAQUE_DIGITS and number.isdigit() and number not in index.shared:
        yield _leak("opaque", fragment, number, None, f"the number {number} has no meaning that a reviewer can see")


def _disguised(fragment: Fragment, index: CorpusIndex) -> Iterator[Leak]:
    """Find what is written as hexadecimal or base64, and hashes."""
    for match in (*_HEX.finditer(fragment.text), *_BASE64.finditer(fragment.text)):
        literal = match.group()
        if literal.lower() in index.shared:
            continue
        hidden = _decoded(literal)
        if hidden is not None:
            for leak in _readable(replace(fragment, kind="string", text=hidden), index):
                yield replace(
                    leak, literal=literal, explanation=f"'{literal}' decodes to '{hidden}': {leak.explanation}"
                )
        if _is_opaque(literal):
            task = _hashed_task(literal, index)
            why = (
                f"is a hash of a literal of training task {task}" if task else "has no meaning that a reviewer can see"
            )
            yield _leak("opaque", fragment, literal, task, f"'{literal}' {why}")


def _is_opaque(literal: str) -> bool:
    if _HEX.fullmatch(literal):
        return len(literal) >= _OPAQUE_HEX
    kinds = (str.isupper, str.islower, str.isdigit)
    return len(literal) >= _OPAQUE_BASE64 and all(any(kind(c) for c in literal) for kind in kinds)


def _decoded(literal: str) -> str | None:
    """Return the printable text behind a hexadecimal or base64 literal, or None."""
    padded = literal.rstrip("=") + "=" * (-len(literal.rstrip("=")) % 4)
    for decode in (bytes.fromhex, lambda text: base64.b64decode(padded, altchars=b"-_", validate=True)):
        try:
            text = decode(literal).decode("utf-8")
        except (ValueError, binascii.Error):
            continue
        if len(text) >= 4 and text.isprintable():
            return text
    return None


def _hashed_task(literal: str, index: CorpusIndex) -> str | None:
    """Return the task whose id, text or telling literal has this hash, or None."""
    candidates = [(task, task) for task in index.tasks] + [(text, task) for task, text in index.tasks.items()]
    candidates += [*index.marks.items(), *((" ".join(value), task) for value, task in index.gold.items())]
    for text, task in candidates:
        for name in _HASHES:
            if hashlib.new(name, text.encode(), usedforsecurity=False).hexdigest().startswith(literal.lower()):
                return task
    return None


def _only(fragment: Fragment, literal: str, task: str) -> Leak:
    return _leak("literal", fragment, literal, task, f"'{literal}' occurs in training task {task} only")


def _leak(kind: LeakKind, fragment: Fragment, literal: str, task: str | None, explanation: str) -> Leak:
    return Leak(kind, literal, task, fragment.file, fragment.line, explanation)
