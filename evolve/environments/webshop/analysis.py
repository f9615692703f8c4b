"""Turns text into index words as Lucene's English analysis does: UAX #29 words, lower case, stop words, Porter stems.

Written from the published rules and held against searches of the real index; it covers what product texts contain:
letters, digits, signs, ideographs and pictographs. Combining scripts without spaces are not segmented.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache

from evolve.environments.data import need_module
from evolve.environments.webshop.benchmark import EXTRA

_STOPPED = """
a an and are as at be but by for if in into is it no not of on or such that the their then there these they this to
was will with
"""
STOP_WORDS = frozenset(_STOPPED.split())
SHORTEST_STEMMED = 3
LONGEST_WORD = 255

_IDEOGRAPH = "\u3005\u3007\u3041-\u3096\u309f\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_KATAKANA = "\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9d"
_PICTOGRAPH = (
    "\u00a9\u00ae\u203c\u2049\u2122\u2139\u2194-\u2199\u21a9\u21aa\u231a\u231b\u2328\u2388\u23cf\u23e9-\u23f3"
    "\u23f8-\u23fa\u24c2\u25aa\u25ab\u25b6\u25c0\u25fb-\u25fe\u2600-\u2605\u2607-\u2612\u2614-\u2685\u2690-\u2705"
    "\u2708-\u2712\u2714\u2716\u271d\u2721\u2728\u2733\u2734\u2744\u2747\u274c\u274e\u2753-\u2755\u2757\u2763-\u2767"
    "\u2795-\u2797\u27a1\u27b0\u27bf\u2934\u2935\u2b05-\u2b07\u2b1b\u2b1c\u2b50\u2b55\u3030\u303d\u3297\u3299"
    "\U0001f000-\U0001f0ff\U0001f10d-\U0001f10f\U0001f12f\U0001f16c-\U0001f171\U0001f17e\U0001f17f\U0001f18e"
    "\U0001f191-\U0001f19a\U0001f201-\U0001f20f\U0001f21a\U0001f22f\U0001f232-\U0001f23a\U0001f249-\U0001f3fa"
    "\U0001f400-\U0001f53d\U0001f546-\U0001f64f\U0001f680-\U0001f6ff\U0001f7d5-\U0001f7ff\U0001f900-\U0001faff"
)
"""Extended_Pictographic of Unicode 12, the version that the reference index was built with."""
_NOT_LETTER = (
    "\u00b2\u00b3\u00b9\u00bc-\u00be\u2070-\u2079\u2080-\u2089\u2150-\u215f\u2189"
    "\u2460-\u249b\u24ea-\u24ff\u2776-\u2793\uff9e\uff9f"
)
"""Numbers that are neither digits nor letters, and the half-width voicing marks."""
_LETTER = rf"[^\W\d_{_NOT_LETTER}{_IDEOGRAPH}{_KATAKANA}{_PICTOGRAPH}]"
_DIGIT = r"\d"
_MARK = "[\u0300-\u036f\u200d\ufe0f\u00ad\uff9e\uff9f\U0001f3fb-\U0001f3ff]"
_IN_WORD = "['.:\u00b7\u2018\u2019\u2024\u2027\ufe13\ufe52\ufe55\uff07\uff0e\uff1a]"
_IN_NUMBER = "['.,;\u2018\u2019\u2024\u2044\ufe10\ufe14\ufe50\ufe52\ufe54\uff07\uff0c\uff0e\uff1b]"
_JOINT = f"(?<={_LETTER}){_IN_WORD}(?={_LETTER})|(?<={_DIGIT}){_IN_NUMBER}(?={_DIGIT})"
_WORD = re.compile(
    f"_*(?:{_LETTER}|{_DIGIT}){_MARK}*(?:(?:{_LETTER}|{_DIGIT}|_){_MARK}*|{_JOINT})*"
    f"|(?:[{_KATAKANA}]{_MARK}*)+|[{_IDEOGRAPH}]|[{_PICTOGRAPH}](?:{_MARK}|(?<=\u200d)[{_PICTOGRAPH}])*"
)
_POSSESSIVE = re.compile("['\u2019\uff07][sS]$")


class Analyser:
    """Words to stems, remembered per instance.

    Raises:
        ConfigError: the stemmer is not installed.
    """

    def __init__(self) -> None:
        porter = need_module("nltk.stem.porter", extra=EXTRA).PorterStemmer
        stem: Callable[..., str] = porter(mode=porter.MARTIN_EXTENSIONS).stem
        self._stem = lru_cache(maxsize=200_000)(lambda word: stem(word, to_lowercase=False))

    def words(self, text: str) -> list[str]:
        """Return the index words of a text, in order, repetitions kept."""
        return [
            word if len(word) < SHORTEST_STEMMED else self._stem(word)
            for word in map(_plain, _split(text))
            if word not in STOP_WORDS
        ]


def _split(text: str) -> Iterator[str]:
    for match in _WORD.finditer(text):
        word = match.group()
        for start in range(0, len(word), LONGEST_WORD):
            yield word[start : start + LONGEST_WORD]


def _plain(word: str) -> str:
    return _POSSESSIVE.sub("", word).lower()
