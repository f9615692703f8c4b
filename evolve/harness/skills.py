"""Retrieves skills for a task by BM25 (Robertson & Zaragoza 2009, Lucene variant, from the bm25s library)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from evolve.harness.artifact import Skill

_WORD = re.compile(r"[a-z0-9]+")


class SkillIndex:
    """Skills by the words of their title and `when`. "No skill" is a result, not a failure."""

    def __init__(self, skills: Sequence[Skill]) -> None:
        self._skills = tuple(skills)
        self._vocabulary: frozenset[str] = frozenset()
        if skills:
            self._index()

    def _index(self) -> None:
        import bm25s  # with numpy, a tenth of the start of a command; most harnesses have no skills
        from bm25s.stopwords import STOPWORDS_EN

        texts = (f"{skill.head.title} {skill.head.when}" for skill in self._skills)
        corpus = [[word for word in _words(text) if word not in STOPWORDS_EN] for text in texts]
        if any(corpus):
            self._bm25 = bm25s.BM25(method="lucene")
            self._bm25.index(corpus, show_progress=False)
            self._vocabulary = frozenset(word for words in corpus for word in words)

    def retrieve(self, text: str, *, top_k: int, min_score: float) -> tuple[Skill, ...]:
        """Return up to top_k skills whose score reaches min_score (and is above 0), best first, ties by order."""
        query = [word for word in _words(text) if word in self._vocabulary]
        if not query or top_k == 0:
            return ()
        scores = [float(score) for score in self._bm25.get_scores(query)]
        order = sorted(range(len(scores)), key=lambda i: (-scores[i], i))[:top_k]
        return tuple(self._skills[i] for i in order if scores[i] > 0 and scores[i] >= min_score)


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())
