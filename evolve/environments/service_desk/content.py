"""Where tickets take their names, ids and amounts from: a pool per split, and a builder of rows.

Pools of different splits share nothing: not a name, a product, a street, an id or an amount.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from evolve.environments.service_desk.desk import (
    Customer,
    Desk,
    Item,
    Order,
    OrderStatus,
    Size,
    Subscription,
    Tier,
    plain,
)

AMOUNT_STEP = 12
SIZES = ("S", "M", "L", "XL")


@dataclass(frozen=True, slots=True)
class Pool:
    """The content of one split.

    `ids` is the range of its four-digit numbers. Item prices leave `residue` and late fees `fee_residue`
    cents when divided by 12, so an order of two items leaves twice `residue`.
    """

    seed: int
    ids: range
    residue: int
    fee_residue: int
    host: str
    first_names: Sequence[str]
    last_names: Sequence[str]
    goods: Sequence[str]
    clothes: Sequence[str]
    streets: Sequence[str]
    towns: Sequence[str]


class Builder:
    """Adds rows to the desk of one ticket at a time, from the pool's own random stream."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self.random = random.Random(pool.seed)  # noqa: S311 - tickets need a fixed stream, not secrecy
        self._numbers = iter(self.random.sample(pool.ids, len(pool.ids)))
        self.desk = Desk()

    def start(self) -> Customer:
        """Begin a new ticket: a desk with the sender and a stranger. Returns the sender."""
        self.desk = Desk()
        people = [self._customer(), self._customer()]
        self.random.shuffle(people)
        self.desk.customers = {person.customer_id: person for person in people}
        return people[0]

    def stranger(self, sender: Customer) -> Customer:
        """Return the other customer of this desk."""
        return next(c for c in self.desk.customers.values() if c is not sender)

    def order(
        self, owner: Customer, status: OrderStatus, *, items: Sequence[Item] = (), days: int | None = None
    ) -> Order:
        """Add an order; without `items` it holds one thing of moderate price."""
        order = Order(
            order_id=self._id("O"),
            customer_id=owner.customer_id,
            status=status,
            items=list(items) or [self.item()],
            address=plain(self.address()),
            days=days if status != "delivered" or days is not None else self.random.randint(2, 25),
        )
        self.desk.orders[order.order_id] = order
        return order

    def item(self, lowest: int = 12_00, highest: int = 90_00, avoid: str = "") -> Item:
        """Make an item of the pool's goods, priced between two amounts in cents."""
        names = [name for name in self.pool.goods if name != avoid]
        return Item(self._id("K"), self.random.choice(names), self.amount(lowest, highest))

    def garment(self) -> tuple[Item, Size]:
        """Make a garment with all its sizes on the shelf. Returns it and another size in stock."""
        product = self.random.choice(self.pool.clothes)
        sizes = [Size(self._id("K"), product, size, self.random.randint(1, 9)) for size in SIZES]
        self.desk.sizes |= {size.sku: size for size in sizes}
        bought, wanted = self.random.sample(sizes, 2)
        return Item(bought.sku, f"{product} {bought.size}", self.amount(25_00, 110_00)), wanted

    def subscription(self, owner: Customer, *, plan: str, months: int, balance: int = 0) -> Subscription:
        """Add a subscription that runs."""
        this = Subscription(self._id("S"), owner.customer_id, plan, months=months, balance=balance)
        self.desk.subscriptions[this.subscription_id] = this
        return this

    def amount(self, lowest: int, highest: int) -> int:
        """Draw an item price or a wish, in cents."""
        return self.random.randrange(lowest, highest) // AMOUNT_STEP * AMOUNT_STEP + self.pool.residue

    def fee(self) -> int:
        """Draw a shipping fee, in cents."""
        return self.random.randrange(3_00, 9_00) // AMOUNT_STEP * AMOUNT_STEP + self.pool.fee_residue

    def address(self) -> str:
        """Draw an address in one line."""
        house = self.random.randint(2, 98)
        return f"{house} {self.random.choice(self.pool.streets)}, {self.random.choice(self.pool.towns)}"

    def _customer(self) -> Customer:
        first, last = self.random.choice(self.pool.first_names), self.random.choice(self.pool.last_names)
        number = self._id("C")
        tier: Tier = "gold" if self.random.random() < 0.4 else "standard"
        return Customer(number, f"{first} {last}", f"{first}.{last}@{self.pool.host}".lower(), tier)

    def _id(self, letter: str) -> str:
        return f"{letter}-{next(self._numbers)}"
