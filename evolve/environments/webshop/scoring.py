"""Scores a purchase as upstream does: shares of attributes, options and price, times how well the kind of thing fits.

Pure. Two oddities of upstream decide scores and are kept: a goal's option is compared as the text of a
(name, value) pair, whose value counts as a colour only where it is one exactly, while of the chosen option the first
colour inside it is taken; so some goals cannot reach 1.0 with every option right.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from evolve.environments.data import need_module
from evolve.environments.webshop.benchmark import EXTRA
from evolve.environments.webshop.catalogue import Product
from evolve.environments.webshop.colours import COLOURS
from evolve.environments.webshop.goals import Goal
from evolve.environments.webshop.titles import Subjects
from evolve.records import Score

VERSION = "1"
PASS_MARK = 1.0
ALIKE = 85
"""Token-set ratio (of 100) above which two texts say the same."""


class Scorer:
    """Compares purchases with goals.

    Raises:
        ConfigError: rapidfuzz is not installed.
    """

    def __init__(self, subjects: Subjects) -> None:
        self._subjects = subjects
        self._ratio: Callable[..., float] = need_module("rapidfuzz.fuzz", extra=EXTRA).token_set_ratio
        self._plain: Callable[[str], str] = need_module("rapidfuzz.utils", extra=EXTRA).default_process
        self.version = f"{VERSION}, titles by {subjects.name}"

    def nothing_bought(self) -> Score:
        """Return the score of an episode without a purchase."""
        return Score(value=0.0, success=False, version=self.version)

    def score(self, goal: Goal, product: Product, chosen: Mapping[str, str]) -> Score:
        """Score the purchase of a product with the options chosen. Parts are upstream's, weights included."""
        kind = self._kind_parts(goal, product)
        attributes = sum(self._has_attribute(product, wanted) for wanted in goal.attributes)
        options = self._matched_options(goal, list(chosen.values()))
        price = fits_price(goal, product)
        wanted = len(goal.attributes) + len(goal.options) + 1
        value = (attributes + options + price) / wanted * kind["r_type"]
        parts = {
            **kind,
            "r_att": attributes / len(goal.attributes),
            "w_att": len(goal.attributes) / wanted,
            "r_price": float(price),
            "w_price": 1 / wanted,
        }
        if goal.options:
            parts |= {"r_option": options / len(goal.options), "w_option": len(goal.options) / wanted}
        return Score(value=value, success=value >= PASS_MARK, parts=parts, version=self.version)

    def _kind_parts(self, goal: Goal, product: Product) -> dict[str, float]:
        same_query = product.query == goal.query
        same_category = len(set(product.categories) & set(goal.categories)) >= 2
        wanted = self._subjects(goal.title)
        shared = set(self._subjects(product.title)) & set(wanted)
        overlap = len(shared) / len(wanted) if wanted else 0.2
        fit = 1.0 if same_query or same_category or overlap > 0.2 else 0.5
        if overlap < 0.1:
            fit = 0.1 if overlap else 0.0
        return {
            "r_type": fit,
            "query_match": float(same_query),
            "category_match": float(same_category),
            "title_score": overlap,
        }

    def _has_attribute(self, product: Product, wanted: str) -> bool:
        return any(self._is_alike(had, wanted) for had in product.attributes) or product.mentions(wanted)

    def _matched_options(self, goal: Goal, chosen: Sequence[str]) -> int:
        reduced = [_reduced(value) for value in chosen]
        return sum(any(self._is_alike(had, _reduced(option)) for had in reduced) for option in goal.options)

    def _is_alike(self, left: str, right: str) -> bool:
        ratio = self._ratio(_without_latin(left), _without_latin(right), processor=self._plain)
        return round(ratio) > ALIKE


def fits_price(goal: Goal, product: Product) -> bool:
    """True where the price is within the goal's limit. The product it was made of always is: the limit lies above."""
    return product.asin == goal.asin or product.price <= goal.price_limit


def _reduced(option: str | tuple[str, str]) -> str:
    """Return the first colour in an option, else the option as text; a pair holds only what it equals."""
    return next((colour for colour in COLOURS if colour in option), str(option))


def _without_latin(text: str) -> str:
    """Drop the upper half of Latin-1, as the scorer's comparison of texts does."""
    return "".join(mark for mark in text if not 128 <= ord(mark) < 256)
