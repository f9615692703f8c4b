"""The desk's tools: one table of name, schema and handler. Handlers read or change the desk, and ask no policy.

Reads answer with rows; a change answers with a sentence that a closing statement can quote.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from evolve.environments.service_desk.desk import Desk, Item, SubscriptionStatus, cents_of, money, plain
from evolve.records import Json, Tool

Handler = Callable[[Desk, Json], Json | str]

TEXT: Json = {"type": "string"}
NUMBER: Json = {"type": "number"}
CLOSE = "close_ticket"
STATUS_AFTER: dict[str, SubscriptionStatus] = {"pause": "paused", "resume": "active", "cancel": "cancelled"}


def _id(letter: str) -> Json:
    """Describe an id by its pattern; as a `pattern`, decoders that enforce one would make up an id of that form."""
    return {"type": "string", "description": f"^{letter}-[0-9]{{4}}$"}


def _enum(*values: str) -> Json:
    return {"type": "string", "enum": list(values)}


@dataclass(frozen=True, slots=True)
class Entry:
    """A tool and what runs it."""

    tool: Tool
    run: Handler


def _entry(
    run: Handler, description: str, *, read_only: bool = False, optional: tuple[str, ...] = (), **properties: Json
) -> Entry:
    required = [name for name in properties if name not in optional]
    parameters: Json = {"type": "object", "properties": properties, "required": required}
    name = run.__name__
    return Entry(Tool(name=name, description=description, parameters=parameters, read_only=read_only), run)


def find_customer(desk: Desk, args: Json) -> Json:
    """Look a customer up by email, with what the customer has."""
    this = next(c for c in desk.customers.values() if c.email == args["email"])
    orders = [order for order in desk.orders.values() if order.customer_id == this.customer_id]
    answer: Json = {"customer_id": this.customer_id, "tier": this.tier}
    if orders:
        answer["orders"] = {o.order_id: f"{o.status}: {', '.join(item.name for item in o.items)}" for o in orders}
    for subscription in desk.subscriptions.values():
        if subscription.customer_id == this.customer_id:
            answer["subscription_id"] = subscription.subscription_id
    return answer


def get_order(desk: Desk, args: Json) -> Json:
    """Show one order; the fee stands there only where it was paid for a late parcel."""
    order = desk.orders[args["order_id"]]
    answer: Json = {"customer_id": order.customer_id, "status": order.status}
    if order.days is not None:
        answer["days_since_delivery"] = order.days
    answer["items"] = {item.sku: f"{item.name}, {money(item.price)}" for item in order.items}
    answer["total"] = money(order.total)
    if order.late_fee:
        answer["shipping_fee"] = money(order.late_fee)
    return answer


def get_product(desk: Desk, args: Json) -> Json:
    """List the sizes of the product that a sku belongs to, with stock."""
    this = desk.sizes.get(args["sku"])
    if this is None:
        return {"sizes": {}}
    sizes = [size for size in desk.sizes.values() if size.product == this.product]
    return {"product": this.product, "sizes": {s.size: {"sku": s.sku, "stock": s.stock} for s in sizes}}


def get_subscription(desk: Desk, args: Json) -> Json:
    """Show one subscription."""
    this = desk.subscriptions[args["subscription_id"]]
    return {
        "customer_id": this.customer_id,
        "plan": this.plan,
        "status": this.status,
        "months_active": this.months,
        "balance": money(this.balance),
    }


def cancel_order(desk: Desk, args: Json) -> str:
    """Cancel a pending order and pay it back."""
    order = desk.orders[args["order_id"]]
    order.status = "cancelled"
    order.refunds.append(order.total)
    return f"Done: {order.order_id} is cancelled, {money(order.total)} is paid back."


def refund_order(desk: Desk, args: Json) -> str:
    """Pay part of a delivered order back."""
    cents = cents_of(args["amount"])
    desk.orders[args["order_id"]].refunds.append(cents)
    return f"Done: {args['order_id']} has {money(cents)} refunded."


def change_address(desk: Desk, args: Json) -> str:
    """Send a pending order elsewhere."""
    desk.orders[args["order_id"]].address = plain(args["address"])
    return f"Done: {args['order_id']} goes to {args['address']}."


def exchange_item(desk: Desk, args: Json) -> str:
    """Swap the item of an order that is of the same product for another size."""
    order, new = desk.orders[args["order_id"]], desk.sizes[args["new_sku"]]
    old = next(item for item in order.items if item.sku in desk.sizes and desk.sizes[item.sku].product == new.product)
    order.items[order.items.index(old)] = Item(new.sku, f"{new.product} {new.size}", old.price)
    new.stock -= 1
    return f"Done: {old.sku} in {order.order_id} is exchanged for {new.sku}."


def change_subscription(desk: Desk, args: Json) -> str:
    """Pause, resume or cancel a subscription, or put it on another plan."""
    this = desk.subscriptions[args["subscription_id"]]
    if args["action"] == "change_plan":
        this.plan = args["plan"]
        return f"Done: {this.subscription_id} is on plan {this.plan}."
    this.status = STATUS_AFTER[args["action"]]
    this.paused_for = args.get("months", 0)
    return f"Done: {this.subscription_id} is {this.status}."


def issue_credit(desk: Desk, args: Json) -> str:
    """Give a customer goodwill credit."""
    cents = cents_of(args["amount"])
    desk.credits[args["customer_id"]] = cents
    return f"Done: {args['customer_id']} has {money(cents)} credited."


def escalate(desk: Desk, args: Json) -> str:
    """Hand an order to another team."""
    desk.escalations[args["order_id"]] = args["queue"]
    return f"Escalated: {args['order_id']} is with {args['queue']}."


def close_ticket(desk: Desk, args: Json) -> str:
    """End the session; the session keeps the closing words."""
    return f"Closed: {args['resolution']}."


ORDER, CUSTOMER, SUBSCRIPTION, ITEM = _id("O"), _id("C"), _id("S"), _id("K")
ENTRIES: tuple[Entry, ...] = (
    _entry(find_customer, "Find a customer and what they have.", read_only=True, email=TEXT),
    _entry(get_order, "Show an order.", read_only=True, order_id=ORDER),
    _entry(get_product, "List the sizes of an item.", read_only=True, sku=ITEM),
    _entry(get_subscription, "Show a subscription.", read_only=True, subscription_id=SUBSCRIPTION),
    _entry(
        cancel_order, "Cancel an order.", order_id=ORDER, reason=_enum("changed_mind", "ordered_twice", "found_cheaper")
    ),
    _entry(
        refund_order, "Refund an amount.", order_id=ORDER, amount=NUMBER, reason=_enum("damaged", "wrong_item", "late")
    ),
    _entry(change_address, "Change a delivery address.", order_id=ORDER, address=TEXT),
    _entry(exchange_item, "Exchange a size.", order_id=ORDER, new_sku=ITEM),
    _entry(
        change_subscription,
        "Change a subscription.",
        optional=("months", "plan"),
        subscription_id=SUBSCRIPTION,
        action=_enum("pause", "resume", "cancel", "change_plan"),
        months={"type": "integer"},
        plan=_enum("mini", "classic", "family"),
    ),
    _entry(issue_credit, "Give goodwill credit.", customer_id=CUSTOMER, amount=NUMBER),
    _entry(escalate, "Pass an order to a team.", order_id=ORDER, queue=_enum("billing", "logistics")),
    _entry(close_ticket, "End the ticket.", resolution=_enum("done", "refused", "escalated"), statement=TEXT),
)

TABLE = {entry.tool.name: entry for entry in ENTRIES}
TOOLS = tuple(entry.tool for entry in ENTRIES)
