"""The shop's products and the index over them: one read-only copy that all sessions of an environment share."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

import orjson

from evolve.environments.webshop.analysis import Analyser
from evolve.errors import ConfigError
from evolve.records import Json

SEARCH_LIMIT = 50


@dataclass(frozen=True, slots=True)
class Review:
    """What a customer wrote."""

    title: str
    score: str
    body: str


@dataclass(frozen=True, slots=True)
class Product:
    """A product as upstream processes it. `options` maps an option's name to its values in order.

    Attributes:
        price_text: what pages show: one price, or a range.
        price: what the scorer compares; the middle of a range.
        category: the broad one, of five; `categories` are the steps of the shop's own tree.
    """

    asin: str
    title: str
    description: str
    features: tuple[str, ...]
    price_text: str
    price: float
    rating: str
    category: str
    query: str
    categories: tuple[str, ...]
    attributes: tuple[str, ...]
    options: Mapping[str, tuple[str, ...]]
    reviews: tuple[Review, ...] = ()
    texts: tuple[str, ...] = field(default=(), repr=False)

    @classmethod
    def read(cls, product: Json) -> Product:
        """Read the `product` of a document; KeyError, TypeError or ValueError where it is none."""
        features = tuple(str(feature) for feature in product["BulletPoints"])
        prices = [float(price) for price in product["pricing"]] or [100.0]
        title, description = str(product["Title"]), str(product["Description"])
        return cls(
            asin=product["asin"],
            title=title,
            description=description,
            features=features,
            price_text=product["Price"],
            price=sum(prices[:2]) / len(prices[:2]),
            rating=str(product["Rating"]),
            category=product["category"],
            query=product["query"],
            categories=split_categories(product["product_category"]),
            attributes=tuple(product["Attributes"]),
            options={name: tuple(values) for name, values in product["options"].items()},
            reviews=tuple(Review(str(r["title"]), str(r["score"]), str(r["body"])) for r in product["Reviews"]),
            texts=(title.lower(), " ".join(features).lower(), description.lower()),
        )

    def mentions(self, words: str) -> bool:
        """True where title, features or description contain the words as they stand, case ignored."""
        return any(words in text for text in self.texts)


def split_categories(path: str) -> tuple[str, ...]:
    """Return the distinct steps of a path such as `Home & Kitchen › Bedding`, sorted: their order does not count."""
    return tuple(sorted({step.strip() for step in path.split("›")}))


class Catalogue:
    """Products by id and the index over them. Read-only.

    Args:
        documents: one JSON document a line, as upstream's conversion writes them.
        source: the file's name, for messages.

    Attributes:
        digest: SHA-256 of the documents.

    Raises:
        ConfigError: a line is no document, or the stemmer is not installed.
    """

    def __init__(self, documents: bytes, *, source: str) -> None:
        self._analyser = Analyser()
        self.digest = hashlib.sha256(documents).hexdigest()
        self.products: dict[str, Product] = {}
        words: dict[str, list[str]] = {}
        for number, line in enumerate(documents.splitlines(), start=1):
            try:
                document = orjson.loads(line)
                self.products[document["id"]] = Product.read(document["product"])
                words[document["id"]] = self._analyser.words(document["contents"])
            except (KeyError, TypeError, ValueError) as error:
                raise ConfigError(f"{source}, line {number}: no product as upstream writes it: {error!r}") from error
        from evolve.environments.webshop.search import Index  # and numpy, which a list of environments needs not

        self._index = Index(words)

    def search(self, keywords: str) -> tuple[Product, ...]:
        """Return the best products for keywords, at most 50, best first."""
        hits = self._index.search(self._analyser.words(keywords), SEARCH_LIMIT)
        return tuple(self.products[asin] for asin, _ in hits)
