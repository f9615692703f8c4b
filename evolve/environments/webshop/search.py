"""Ranks products for keywords as the reference index does: BM25 on lengths kept in one byte, ties by product id.

Arithmetic is in single precision where the reference's is, since equal scores are what ties are made of.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from math import log

import numpy as np

K1 = np.float32(0.9)
B = np.float32(0.4)
EXACT_LENGTH = 24
"""Lengths below this are kept as they are; above, only the four leading bits are."""


class Index:
    """An inverted index over the words of products, by product id. Read-only, so sessions share it."""

    def __init__(self, documents: Mapping[str, Sequence[str]]) -> None:
        self._ids = sorted(documents)
        postings: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for number, identifier in enumerate(self._ids):
            for word, count in Counter(documents[identifier]).items():
                postings[word].append((number, count))
        self._postings = {word: _columns(pairs) for word, pairs in postings.items()}
        lengths = np.array([len(documents[identifier]) for identifier in self._ids])
        kept = np.array([kept_length(int(length)) for length in lengths], dtype=np.float32)
        mean = np.float32(lengths.mean() if len(lengths) else 1)
        self._inverse_norms = np.float32(1) / (K1 * ((1 - B) + B * kept / mean))

    def search(self, words: Sequence[str], limit: int) -> list[tuple[str, float]]:
        """Return at most `limit` products that share a word, best first, with scores; a repeated word counts again."""
        scores = np.zeros(len(self._ids))
        for word, times in Counter(words).items():
            if word in self._postings:
                numbers, counts = self._postings[word]
                weight = np.float32(times) * self._rarity(len(numbers))
                scores[numbers] += weight - weight / (1 + counts * self._inverse_norms[numbers])
        hits = np.flatnonzero(scores)
        exact = scores[hits].astype(np.float32)
        best = np.lexsort((hits, -exact))[:limit]
        return [(self._ids[hits[place]], float(exact[place])) for place in best]

    def _rarity(self, having: int) -> np.float32:
        return np.float32(log(1 + (len(self._ids) - having + 0.5) / (having + 0.5)))


def _columns(pairs: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    numbers, counts = zip(*pairs, strict=True)
    return np.array(numbers, dtype=np.int32), np.array(counts, dtype=np.float32)


def kept_length(length: int) -> int:
    """Return what a length becomes in the index's one byte: exact below 24, else cut to four significant bits."""
    if length < EXACT_LENGTH:
        return length
    above = length - EXACT_LENGTH
    shift = max(above.bit_length() - 4, 0)
    return EXACT_LENGTH + (above >> shift << shift)
