"""The families of tickets: each builds a small desk, a text and the gold around one rule of the policy."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

from evolve.environments.service_desk.cases import Draft, Gold
from evolve.environments.service_desk.content import Builder, Pool
from evolve.environments.service_desk.desk import Customer, Order, OrderStatus, money
from evolve.environments.service_desk.policy import CREDIT_CAP, MINIMUM_MONTHS, REFUND_DAYS, REFUND_LIMIT
from evolve.environments.service_desk.wordings import NUMBERS, WORDINGS
from evolve.records import Call, Json

CANCEL_REASONS = ("changed_mind", "ordered_twice", "found_cheaper")
PLANS = ("mini", "classic", "family")
EXACT_EVERY = 3
WRITTEN = ("zero", "one", "two", "three")


class Writer:
    """Writes one ticket of a family: `turn` picks the wording, and the wording the reason.

    Where `is_exact`, the customer writes ids as the tools want them, else a bare number.
    """

    def __init__(self, family: str, turn: int, builder: Builder, *, is_exact: bool) -> None:
        self.family = family
        self.builder = builder
        self.random = builder.random
        self.wording = turn % len(WORDINGS[family])
        self.sender = builder.start()
        self._is_exact = is_exact
        self._calls: list[Call] = []
        self._code = ""
        self._attempt: Call | None = None

    def call(self, tool: str, **arguments: object) -> None:
        """Add a gold call."""
        self._calls.append(Call(tool=tool, arguments=arguments))

    def look_up(self) -> None:
        """Add the gold call that finds the sender, for tickets that name no id."""
        self.call("find_customer", email=self.sender.email)

    def attempt(self, code: str, tool: str, **arguments: object) -> None:
        """Set the call that the policy refuses with this code."""
        self._code, self._attempt = code, Call(tool=tool, arguments=arguments)

    def spelt(self, name: str) -> str:
        """Return an id as this customer writes it."""
        return name if self._is_exact else NUMBERS[self.wording].format(name[2:])

    def draft(self, resolution: str, *must_name: str, **words: object) -> Draft:
        """Finish the ticket: resolution, what the statement names, words of the text."""
        text = WORDINGS[self.family][self.wording].format(**words)
        first_name = self.sender.name.split()[0]
        gold = Gold(tuple(self._calls), resolution, must_name, self._code, self._attempt)
        full = f"From: {self.sender.email}\n{text}\n{first_name}"
        return Draft(self.family, full, self.sender.customer_id, self.builder.desk, gold)

    def order_draft(self, order: Order, resolution: str, *must_name: str, **words: object) -> Draft:
        """Finish a ticket about an order; the text may use its id and its first item."""
        words = {"id": self.spelt(order.order_id), "thing": order.items[0].name} | words
        return self.draft(resolution, order.order_id, *must_name, **words)

    def refused(self, order: Order, **words: object) -> Draft:
        """Finish a ticket about an order that the policy leaves as it is."""
        words = {"id": self.spelt(order.order_id), "thing": order.items[0].name} | words
        return self.draft("refused", **words)

    def distract(self, avoid: Order) -> None:
        """Add orders that the ticket is not about: the sender's and the stranger's."""
        for owner in (self.sender, self.builder.stranger(self.sender)):
            item = self.builder.item(avoid=avoid.items[0].name)
            self.builder.order(owner, self.random.choice(("pending", "shipped", "delivered")), items=[item])


def _ordered(w: Writer, status: OrderStatus) -> Order:
    order = w.builder.order(w.sender, status)
    w.distract(order)
    return order


def cancel_pending(w: Writer) -> Draft:
    """A pending order is cancelled and paid back in full."""
    order = _ordered(w, "pending")
    w.call("cancel_order", order_id=order.order_id, reason=CANCEL_REASONS[w.wording])
    return w.order_draft(order, "done", money(order.total))


def cancel_shipped(w: Writer) -> Draft:
    """A shipped order cannot be cancelled."""
    order = _ordered(w, "shipped")
    w.attempt("already_shipped", "cancel_order", order_id=order.order_id, reason="changed_mind")
    return w.refused(order)


def _broken(w: Writer, *, days: int, lowest: int, highest: int) -> tuple[Order, str]:
    first = w.builder.item(lowest, highest)
    order = w.builder.order(w.sender, "delivered", items=[first, w.builder.item(avoid=first.name)], days=days)
    w.distract(order)
    return order, money(first.price)


def refund_damaged(w: Writer) -> Draft:
    """A damaged item of a delivered order is refunded, the rest of the order is not."""
    order, price = _broken(w, days=w.random.randint(1, REFUND_DAYS - 5), lowest=12_00, highest=90_00)
    w.call("get_order", order_id=order.order_id)
    w.call("refund_order", order_id=order.order_id, amount=float(price), reason="damaged")
    return w.order_draft(order, "done", price)


def refund_window(w: Writer) -> Draft:
    """A refund asked for after the window is refused, whatever the amount."""
    order, price = _broken(w, days=w.random.randint(REFUND_DAYS + 4, 80), lowest=12_00, highest=90_00)
    w.attempt("window_closed", "refund_order", order_id=order.order_id, amount=float(price), reason="damaged")
    return w.refused(order)


def refund_high(w: Writer) -> Draft:
    """A refund above the limit goes to billing."""
    order, price = _broken(w, days=w.random.randint(1, 20), lowest=REFUND_LIMIT + 10_00, highest=400_00)
    w.call("escalate", order_id=order.order_id, queue="billing")
    return w.order_draft(order, "escalated", price=price)


def refund_late(w: Writer) -> Draft:
    """A late parcel pays the shipping fee back; the ticket names no order number."""
    order = w.builder.order(w.sender, "delivered")
    order.late_fee = w.builder.fee()
    w.distract(order)
    fee = money(order.late_fee)
    w.look_up()
    w.call("get_order", order_id=order.order_id)
    w.call("refund_order", order_id=order.order_id, amount=float(fee), reason="late")
    return w.order_draft(order, "done", fee)


def _on_the_way(w: Writer) -> Order:
    order = _ordered(w, "shipped")
    w.call("escalate", order_id=order.order_id, queue="logistics")
    return order


def refund_undelivered(w: Writer) -> Draft:
    """A parcel that did not arrive goes to logistics."""
    return w.order_draft(_on_the_way(w), "escalated")


def address_shipped(w: Writer) -> Draft:
    """The address of a parcel on its way is a matter for logistics."""
    return w.order_draft(_on_the_way(w), "escalated", address=w.builder.address())


def not_owner(w: Writer) -> Draft:
    """Nobody changes an order of somebody else."""
    is_broken = w.wording == len(WORDINGS["not_owner"]) - 1
    order = w.builder.order(w.builder.stranger(w.sender), "delivered" if is_broken else "pending")
    w.distract(order)
    this: Json = {"order_id": order.order_id}
    if is_broken:
        w.attempt("not_owner", "refund_order", **this, amount=order.items[0].price / 100, reason="damaged")
    else:
        w.attempt("not_owner", "cancel_order", **this, reason="changed_mind")
    return w.refused(order)


def _misfit(w: Writer, *, is_sold_out: bool) -> Draft:
    garment, wanted = w.builder.garment()
    order = w.builder.order(w.sender, "delivered", items=[garment])
    w.call("get_order", order_id=order.order_id)
    w.call("get_product", sku=garment.sku)
    words: Json = {"thing": wanted.product, "size": wanted.size}
    exchange: Json = {"order_id": order.order_id, "new_sku": wanted.sku}
    if is_sold_out:
        wanted.stock = 0
        w.attempt("out_of_stock", "exchange_item", **exchange)
        return w.refused(order, **words)
    w.call("exchange_item", **exchange)
    return w.order_draft(order, "done", **words)


def exchange_size(w: Writer) -> Draft:
    """A garment is exchanged for another size in stock."""
    return _misfit(w, is_sold_out=False)


def exchange_sold_out(w: Writer) -> Draft:
    """A size that is sold out cannot be had."""
    return _misfit(w, is_sold_out=True)


def change_address(w: Writer) -> Draft:
    """A pending order is sent elsewhere; the ticket names no order number."""
    order = _ordered(w, "pending")
    address = w.builder.address()
    w.look_up()
    w.call("change_address", order_id=order.order_id, address=address)
    return w.order_draft(order, "done", address=address)


def _subscribe(w: Writer, *, months: int, balance: int = 0) -> tuple[str, str]:
    here, there = w.random.sample(PLANS, 2)
    subscription = w.builder.subscription(w.sender, plan=here, months=months, balance=balance)
    w.builder.subscription(w.builder.stranger(w.sender), plan=there, months=w.random.randint(7, 40))
    return subscription.subscription_id, there


def pause_subscription(w: Writer) -> Draft:
    """A subscription pauses for one to three months."""
    this, _ = _subscribe(w, months=w.random.randint(7, 40))
    months = w.random.randint(2, 3)
    w.call("change_subscription", subscription_id=this, action="pause", months=months)
    return w.draft("done", this, id=w.spelt(this), months=WRITTEN[months])


def change_plan(w: Writer) -> Draft:
    """A subscription without an open balance changes its plan."""
    this, plan = _subscribe(w, months=w.random.randint(2, 40))
    w.call("change_subscription", subscription_id=this, action="change_plan", plan=plan)
    return w.draft("done", this, id=w.spelt(this), plan=plan)


def plan_balance(w: Writer) -> Draft:
    """A subscription with an open balance keeps its plan."""
    this, plan = _subscribe(w, months=w.random.randint(7, 40), balance=w.builder.amount(8_00, 40_00))
    w.attempt("balance_due", "change_subscription", subscription_id=this, action="change_plan", plan=plan)
    return w.draft("refused", id=w.spelt(this), plan=plan)


def subscription_term(w: Writer) -> Draft:
    """A young subscription cannot be cancelled."""
    this, _ = _subscribe(w, months=w.random.randint(1, MINIMUM_MONTHS - 1))
    w.attempt("minimum_term", "change_subscription", subscription_id=this, action="cancel")
    return w.draft("refused", id=w.spelt(this))


def credit_cap(w: Writer) -> Draft:
    """Goodwill is given up to the cap of the customer's tier; the ticket names no customer id."""
    cap = money(_cap(w.sender))
    w.look_up()
    w.call("issue_credit", customer_id=w.sender.customer_id, amount=float(cap))
    return w.draft("done", cap, wish=money(w.builder.amount(30_00, 80_00)))


def _cap(customer: Customer) -> int:
    return CREDIT_CAP[customer.tier]


FAMILIES: tuple[Callable[[Writer], Draft], ...] = (
    cancel_pending,
    cancel_shipped,
    change_plan,
    refund_damaged,
    credit_cap,
    not_owner,
    exchange_size,
    refund_high,
    pause_subscription,
    refund_window,
    change_address,
    plan_balance,
    refund_undelivered,
    refund_late,
    subscription_term,
    address_shipped,
    exchange_sold_out,
)


def write_tickets(pool: Pool, rounds: int) -> list[Draft]:
    """Write `rounds` tickets of each family, family after family, so that any prefix is balanced.

    In every third ticket of a prefix, and of a family, the customer writes exact ids.
    """
    builder = Builder(pool)
    drafts = []
    for turn, (place, family) in product(range(rounds), enumerate(FAMILIES)):
        is_exact = (turn + place) % EXACT_EVERY == 0
        drafts.append(family(Writer(family.__name__, turn, builder, is_exact=is_exact)))
    return drafts
