"""The desk's database: small mutable rows in one `Desk`, money in cents, and its digest.

Nothing here knows the policy; whoever changes a row has asked `policy` first.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

from evolve.records import digest_of

OrderStatus = Literal["pending", "shipped", "delivered", "cancelled"]
SubscriptionStatus = Literal["active", "paused", "cancelled"]
Tier = Literal["standard", "gold"]


@dataclass(slots=True)
class Customer:
    """A person with an account; the sender of a ticket is one."""

    customer_id: str
    name: str
    email: str
    tier: Tier = "standard"


@dataclass(slots=True)
class Item:
    """One line of an order. `price` is in cents."""

    sku: str
    name: str
    price: int


@dataclass(slots=True)
class Order:
    """An order.

    `days` counts from delivery, None before; `late_fee` is a shipping fee paid for a late parcel; `address`
    is kept as `plain` gives it, so that punctuation and case do not tell two addresses apart.
    """

    order_id: str
    customer_id: str
    status: OrderStatus
    items: list[Item]
    address: str
    days: int | None = None
    late_fee: int = 0
    refunds: list[int] = field(default_factory=list)

    @property
    def total(self) -> int:
        """What the items cost together, in cents."""
        return sum(item.price for item in self.items)


@dataclass(slots=True)
class Subscription:
    """A monthly box. `balance` is what is still to pay, in cents; `months` how long it has run."""

    subscription_id: str
    customer_id: str
    plan: str
    status: SubscriptionStatus = "active"
    balance: int = 0
    months: int = 12
    paused_for: int = 0


@dataclass(slots=True)
class Size:
    """One size of a product on the shelf."""

    sku: str
    product: str
    size: str
    stock: int


@dataclass(slots=True)
class Desk:
    """All rows of one task. Two desks with the same rows have the same digest."""

    customers: dict[str, Customer] = field(default_factory=dict)
    orders: dict[str, Order] = field(default_factory=dict)
    subscriptions: dict[str, Subscription] = field(default_factory=dict)
    sizes: dict[str, Size] = field(default_factory=dict)
    credits: dict[str, int] = field(default_factory=dict)
    escalations: dict[str, str] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """SHA-256 of all rows."""
        return digest_of(self)


def plain(address: str) -> str:
    """Return the words of an address in lower case, without punctuation."""
    return " ".join(re.findall(r"\w+", address.lower()))


def money(cents: int) -> str:
    """Write cents as an amount with two decimals: 2350 is '23.50'."""
    return f"{cents // 100}.{cents % 100:02d}"


def cents_of(amount: float) -> int:
    """Return an amount in cents, rounded to the nearest."""
    return round(amount * 100)
