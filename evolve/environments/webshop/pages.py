"""The shop's pages as text: what upstream's HTML says once its tags are gone, and what can be clicked on it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from evolve.environments.webshop.catalogue import Product

SEPARATOR = " [SEP] "
HTML_SPACES = " \n\t\f\r"
PAGE_SIZE = 10
BACK, NEXT, PREVIOUS, BUY = "Back to Search", "Next >", "< Prev", "Buy Now"
SEARCH, DESCRIPTION, FEATURES, REVIEWS = "Search", "Description", "Features", "Reviews"

Kind = Literal["search", "results", "item", "sub_page", "done"]


@dataclass(frozen=True, slots=True)
class Page:
    """One page: its kind, its text, and what it lets a visitor do.

    Attributes:
        choices: for each option value on an item page, the option's name in lower case.
    """

    kind: Kind
    text: str
    clickables: tuple[str, ...]
    choices: Mapping[str, str] = field(default_factory=dict)

    @property
    def available(self) -> dict[str, object]:
        """What upstream publishes of a page: whether a search bar is on it, and the clickables."""
        return {"has_search_bar": self.kind == "search", "clickables": list(self.clickables)}


def search_page(instruction: str) -> Page:
    """Return the page that a visit starts on."""
    return Page("search", _join(["WebShop", "Instruction:", instruction, SEARCH]), _buttons(SEARCH))


def results_page(instruction: str, products: Sequence[Product], number: int) -> Page:
    """Return one page of results. As upstream's, the last one and those beyond still offer `Next >`."""
    shown = products[(number - 1) * PAGE_SIZE : number * PAGE_SIZE]
    turns = [PREVIOUS, NEXT] if number > 1 else [NEXT]
    listed = [part for product in shown for part in (product.asin, product.title, product.price_text)]
    parts = [f"Page {number} (Total results: {len(products)})", *turns, *listed]
    return Page("results", _below(instruction, parts), _buttons(BACK, *turns, *(product.asin for product in shown)))


def item_page(instruction: str, product: Product) -> Page:
    """Return the page of a product; which options were chosen does not show on it."""
    options = [part for name, values in product.options.items() for part in (name, *values)]
    facts = [product.title, f"Price: {product.price_text}", f"Rating: {product.rating}"]
    more = [DESCRIPTION, FEATURES, REVIEWS, BUY]
    choices = {value: name.lower() for name, values in product.options.items() for value in values}
    clickables = dict.fromkeys([*_buttons(BACK, PREVIOUS, *more), *choices])
    return Page("item", _below(instruction, [PREVIOUS, *options, *facts, *more]), tuple(clickables), choices)


def sub_page(instruction: str, product: Product, name: str) -> Page:
    """Return the page of a product's description, features or reviews."""
    bodies = {
        DESCRIPTION: [product.description],
        FEATURES: [f" {feature}" for feature in product.features],  # the space is in upstream's markup
        REVIEWS: [part for r in product.reviews for part in (f'"{r.title}"', r.score, r.body)],
    }
    return Page("sub_page", _below(instruction, [PREVIOUS, *bodies[name]]), _buttons(BACK, PREVIOUS))


def done_page(product: Product, options: Mapping[str, str], reward: float) -> Page:
    """Return the page after a purchase. Its blanks are upstream's: only id, options and score are filled in."""
    blank = "None"
    bought = ["Purchased", "asin", product.asin, "options", _options_text(options), "attrs", blank]
    bought += ["category", blank, "query", blank, "product category", blank]
    target = ["Target", "asin", "options", "attrs", "price upper", "instuction text", "category"]
    target += ["product category", "query", "Goal", blank]
    score = ["Reward", "Your score (min 0.0, max 1.0)", str(reward), "Reward Details", blank]
    thanks = ["Thank you for shopping with us!", "Your code:", blank, "(Paste it in your MTurk interface.)"]
    return Page("done", _join([*thanks, *bought, *target, *score]), ())


def _below(instruction: str, parts: Sequence[str]) -> str:
    return _join(["Instruction:", instruction, BACK, *parts])


def _join(parts: Sequence[str]) -> str:
    return SEPARATOR.join(part.strip() for part in parts if _is_node(part))


def _is_node(text: str) -> bool:
    """True where an HTML parser makes a node of a text that upstream shows.

    No text makes no node, and upstream skips blank ones with a line break in them; other blanks show as nothing
    between two separators.
    """
    return bool(text.strip(HTML_SPACES)) or ("\n" not in text and text != "")


def _buttons(*names: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name.lower() for name in names))


def _options_text(options: Mapping[str, str]) -> str:
    """Write options as JSON made safe for HTML: names sorted, ASCII only, no markup characters."""
    text = json.dumps(dict(options), sort_keys=True)
    return text.translate({ord(mark): f"\\u{ord(mark):04x}" for mark in "<>&'"})
