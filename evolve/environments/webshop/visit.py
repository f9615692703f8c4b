"""A visit to the shop: which page a visitor is on, and where an action leads. One that fits nothing leads nowhere."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from evolve.environments.webshop import pages
from evolve.environments.webshop.catalogue import Catalogue, Product
from evolve.environments.webshop.pages import Page

ACTION = re.compile(r"(.+)\[(.+)\]")
"""How upstream reads an action; keywords with a bracket or a line break in them are therefore none."""
SUB_PAGES = {name.lower(): name for name in (pages.DESCRIPTION, pages.FEATURES, pages.REVIEWS)}


@dataclass(frozen=True, slots=True)
class Purchase:
    """What was bought, with the options chosen, and the reward that the shop's last page names."""

    product: Product
    options: dict[str, str]
    reward: float


class Visit:
    """The state of one visit.

    Args:
        reward: says what buying a product with options is worth; asked once.
    """

    def __init__(
        self, catalogue: Catalogue, instruction: str, reward: Callable[[Product, dict[str, str]], float]
    ) -> None:
        self._catalogue = catalogue
        self._instruction = instruction
        self._reward = reward
        self._found: tuple[Product, ...] = ()
        self._number = 1
        self._product: Product | None = None
        self._options: dict[str, str] = {}
        self.purchase: Purchase | None = None
        self.page: Page = pages.search_page(instruction)

    def act(self, action: str) -> bool:
        """Do an action such as `search[red shoes]` or `click[buy now]`; False where it is none on this page."""
        read = ACTION.match(action)
        verb, argument = (read[1], read[2].lower()) if read else (action, "")
        if self.purchase is not None or not argument:
            return False
        if verb == "search":
            self._search(argument)
        elif verb == "click" and argument in self.page.clickables and argument != pages.SEARCH.lower():
            self._click(argument)
        else:
            return False
        return True

    def _search(self, keywords: str) -> None:
        self._found = self._catalogue.search(keywords)
        self._show_results(1)

    def _click(self, value: str) -> None:
        match value:
            case "buy now":
                self._buy()
            case "back to search":
                self._product, self._options = None, {}
                self.page = pages.search_page(self._instruction)
            case "next >" if self.page.kind == "results":
                self._show_results(self._number + 1)
            case "< prev" if self.page.kind == "results":
                self._show_results(self._number - 1)
            case "< prev" if self.page.kind == "item":
                self._show_results(self._number)
            case "< prev":
                self._show_item()
            case _ if value in SUB_PAGES:
                self.page = pages.sub_page(self._instruction, self._present, SUB_PAGES[value])
            case _:
                self._choose(value)

    def _choose(self, value: str) -> None:
        """Take a product on a page of results, or an option on a product's page."""
        if value in self.page.choices:
            self._options[self.page.choices[value]] = value
        else:
            self._product = self._catalogue.products[value.upper()]
        self._show_item()

    def _buy(self) -> None:
        reward = self._reward(self._present, self._options)
        self.purchase = Purchase(self._present, dict(self._options), reward)
        self.page = pages.done_page(self._present, self._options, reward)

    def _show_results(self, number: int) -> None:
        self._number, self._product, self._options = number, None, {}
        self.page = pages.results_page(self._instruction, self._found, number)

    def _show_item(self) -> None:
        self.page = pages.item_page(self._instruction, self._present)

    @property
    def _present(self) -> Product:
        assert self._product is not None, "pages that offer this are pages of a product"
        return self._product
