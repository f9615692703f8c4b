"""The desk's policy as one table: which tool is refused when, in which words, with which reason code.

Rules are tried in the order of the table and the first one that is broken answers. A code in brackets
marks a final no, and a closing statement must quote it with the reference beside it, which nobody knows who
did not ask; a refusal without one says what to do instead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from evolve.environments.service_desk.desk import Customer, Desk, Order, Subscription, cents_of, money, plain
from evolve.records import Call, ErrorKind, Json, Observation, digest_of

REFUND_DAYS = 30
REFUND_LIMIT = 150_00
MINIMUM_MONTHS = 6
LONGEST_PAUSE = 3
CREDIT_CAP = {"standard": 10_00, "gold": 25_00}

LIMITS: Json = {
    "window": REFUND_DAYS,
    "limit": money(REFUND_LIMIT),
    "term": MINIMUM_MONTHS,
    "longest": LONGEST_PAUSE,
}

ORDER_TOOLS = ("cancel_order", "refund_order", "change_address", "exchange_item", "escalate")
WRITE_TOOLS = (*ORDER_TOOLS, "change_subscription", "issue_credit")


@dataclass(frozen=True, slots=True)
class Attempt:
    """A write that an agent asks for in a ticket, its arguments already valid."""

    call: Call
    ticket: str
    desk: Desk
    sender: str

    @property
    def tool(self) -> str:
        """The tool that the call names."""
        return self.call.tool

    @property
    def args(self) -> Json:
        """The arguments of the call."""
        return self.call.arguments

    @property
    def order(self) -> Order:
        """The order that the call names."""
        return self.desk.orders[self.args["order_id"]]

    @property
    def subscription(self) -> Subscription:
        """The subscription that the call names."""
        return self.desk.subscriptions[self.args["subscription_id"]]

    @property
    def customer(self) -> Customer:
        """The sender of the ticket."""
        return self.desk.customers[self.sender]

    @property
    def amount(self) -> int:
        """The amount that the call names, in cents."""
        return cents_of(self.args["amount"])


@dataclass(frozen=True, slots=True)
class Rule:
    """One line of the policy. `text` may use the call's arguments, LIMITS, {status}, {fee}, {cap}, {tier}."""

    tools: tuple[str, ...]
    is_broken: Callable[[Attempt], bool]
    text: str
    code: str = ""
    kind: ErrorKind = ErrorKind.REJECTED

    @property
    def template(self) -> str:
        """The whole answer, its facts still in braces."""
        if self.kind is ErrorKind.NO_EFFECT:
            return f"No change: {self.text}"
        return f"Refused ({self.code}, ref {{ref}}): {self.text}" if self.code else f"Refused: {self.text}"

    def refuse(self, attempt: Attempt) -> Observation:
        """Say no in the rule's words."""
        return Observation(text=self.template.format(**_facts(attempt)), error_kind=self.kind)


def reference(ticket: str, call: Call) -> str:
    """Return the four hex digits that a refusal of this call carries in this ticket."""
    return digest_of([ticket, call.tool, call.arguments])[:4].upper()


def _facts(attempt: Attempt) -> Json:
    facts = attempt.args | LIMITS | {"ref": reference(attempt.ticket, attempt.call)}
    if attempt.tool in ORDER_TOOLS:
        facts |= {"status": attempt.order.status, "fee": money(attempt.order.late_fee)}
    if attempt.tool == "issue_credit":
        facts |= {"tier": attempt.customer.tier, "cap": money(CREDIT_CAP[attempt.customer.tier])}
    return facts


def _has_status(*statuses: str) -> Callable[[Attempt], bool]:
    return lambda attempt: attempt.order.status in statuses


def _is_past_window(attempt: Attempt) -> bool:
    return (attempt.order.days or 0) > REFUND_DAYS


def _is_wrong_item_price(attempt: Attempt) -> bool:
    prices = {item.price for item in attempt.order.items}
    return attempt.args["reason"] != "late" and attempt.amount not in prices


def _is_wrong_late_fee(attempt: Attempt) -> bool:
    return attempt.args["reason"] == "late" and attempt.amount != attempt.order.late_fee


def _is_other_product(attempt: Attempt) -> bool:
    sizes = attempt.desk.sizes
    new = sizes.get(attempt.args["new_sku"])
    return new is None or new.product not in {sizes[i.sku].product for i in attempt.order.items if i.sku in sizes}


def _does(action: str) -> Callable[[Attempt], bool]:
    return lambda attempt: attempt.args["action"] == action


def _is_bad_pause(attempt: Attempt) -> bool:
    return _does("pause")(attempt) and not 1 <= attempt.args.get("months", 0) <= LONGEST_PAUSE


def _is_stray_months(attempt: Attempt) -> bool:
    return not _does("pause")(attempt) and "months" in attempt.args


def _is_same_plan(attempt: Attempt) -> bool:
    return _does("change_plan")(attempt) and attempt.args["plan"] == attempt.subscription.plan


CANCEL, REFUND, ADDRESS, EXCHANGE = ("cancel_order",), ("refund_order",), ("change_address",), ("exchange_item",)
SUBSCRIPTION, CREDIT, ESCALATE = ("change_subscription",), ("issue_credit",), ("escalate",)
NO_EFFECT = ErrorKind.NO_EFFECT

RULES: tuple[Rule, ...] = (
    # who asks
    Rule(ORDER_TOOLS, lambda a: a.order.customer_id != a.sender, "{order_id} is not the sender's order.", "not_owner"),
    Rule(
        SUBSCRIPTION,
        lambda a: a.subscription.customer_id != a.sender,
        "{subscription_id} is not the sender's subscription.",
        "not_owner",
    ),
    Rule(CREDIT, lambda a: a.args["customer_id"] != a.sender, "{customer_id} is not the sender.", "not_owner"),
    # cancel_order
    Rule(CANCEL, _has_status("cancelled"), "{order_id} is already cancelled.", kind=NO_EFFECT),
    Rule(CANCEL, _has_status("shipped"), "an order with status shipped cannot be cancelled.", "already_shipped"),
    Rule(
        CANCEL,
        _has_status("delivered"),
        "an order with status delivered cannot be cancelled; only damaged, late or wrong items are refunded.",
        "already_delivered",
    ),
    # refund_order
    Rule(REFUND, _has_status("cancelled"), "{order_id} is cancelled and was paid back in full.", kind=NO_EFFECT),
    Rule(REFUND, _has_status("pending"), "an order with status pending is not refunded; use cancel_order."),
    Rule(
        REFUND,
        _has_status("shipped"),
        "an order with status shipped is not refunded; use escalate with queue logistics.",
    ),
    Rule(REFUND, _is_past_window, "refunds end {window} days after delivery.", "window_closed"),
    Rule(REFUND, lambda a: a.amount in a.order.refunds, "{amount} is already refunded.", kind=NO_EFFECT),
    Rule(
        REFUND,
        lambda a: a.args["reason"] == "late" and not a.order.late_fee,
        "{order_id} was not late.",
        "not_late",
    ),
    Rule(REFUND, _is_wrong_late_fee, "for reason late the amount is the shipping fee, {fee}."),
    Rule(
        REFUND,
        _is_wrong_item_price,
        "for reason {reason} the amount is the price of the item concerned; get_order shows it.",
    ),
    Rule(
        REFUND,
        lambda a: a.amount > REFUND_LIMIT,
        "billing decides on refunds above {limit}; use escalate with queue billing.",
    ),
    # change_address
    Rule(
        ADDRESS,
        _has_status("shipped"),
        "an order with status shipped keeps its address; use escalate with queue logistics.",
    ),
    Rule(ADDRESS, _has_status("delivered"), "{order_id} was delivered.", "already_delivered"),
    Rule(ADDRESS, _has_status("cancelled"), "{order_id} is cancelled.", kind=NO_EFFECT),
    Rule(
        ADDRESS,
        lambda a: plain(a.args["address"]) == a.order.address,
        "{order_id} already has this address.",
        kind=NO_EFFECT,
    ),
    # exchange_item
    Rule(EXCHANGE, lambda a: a.order.status != "delivered", "only delivered orders are exchanged.", "not_delivered"),
    Rule(EXCHANGE, _is_past_window, "exchanges end {window} days after delivery.", "window_closed"),
    Rule(EXCHANGE, _is_other_product, "{new_sku} is no size of an item of {order_id}; take it from get_product."),
    Rule(
        EXCHANGE,
        lambda a: a.args["new_sku"] in {item.sku for item in a.order.items},
        "{order_id} already has {new_sku}.",
        kind=NO_EFFECT,
    ),
    Rule(EXCHANGE, lambda a: a.desk.sizes[a.args["new_sku"]].stock == 0, "{new_sku} is sold out.", "out_of_stock"),
    # change_subscription
    Rule(
        SUBSCRIPTION,
        lambda a: a.subscription.status == "cancelled",
        "{subscription_id} is already cancelled.",
        kind=NO_EFFECT,
    ),
    Rule(
        SUBSCRIPTION,
        lambda a: _does("pause")(a) and a.subscription.status == "paused",
        "{subscription_id} is already paused.",
        kind=NO_EFFECT,
    ),
    Rule(
        SUBSCRIPTION,
        lambda a: _does("resume")(a) and a.subscription.status == "active",
        "{subscription_id} is already active.",
        kind=NO_EFFECT,
    ),
    Rule(SUBSCRIPTION, _is_bad_pause, "a pause needs months, 1 to {longest}."),
    Rule(SUBSCRIPTION, _is_stray_months, "months goes with pause only."),
    Rule(
        SUBSCRIPTION,
        lambda a: _does("cancel")(a) and a.subscription.months < MINIMUM_MONTHS,
        "a subscription runs at least {term} months before it can be cancelled.",
        "minimum_term",
    ),
    Rule(SUBSCRIPTION, lambda a: _does("change_plan")(a) and "plan" not in a.args, "change_plan needs plan."),
    Rule(SUBSCRIPTION, lambda a: not _does("change_plan")(a) and "plan" in a.args, "plan goes with change_plan only."),
    Rule(SUBSCRIPTION, _is_same_plan, "the plan is already {plan}.", kind=NO_EFFECT),
    Rule(
        SUBSCRIPTION,
        lambda a: _does("change_plan")(a) and a.subscription.balance > 0,
        "the plan stays while a balance is open.",
        "balance_due",
    ),
    Rule(
        SUBSCRIPTION,
        lambda a: _does("change_plan")(a) and a.subscription.status == "paused",
        "a paused subscription keeps its plan; resume it first.",
    ),
    # issue_credit
    Rule(CREDIT, lambda a: a.sender in a.desk.credits, "this ticket already has a credit.", kind=NO_EFFECT),
    Rule(
        CREDIT,
        lambda a: a.amount > CREDIT_CAP[a.customer.tier],
        "credit for tier {tier} is at most {cap}; issue that.",
    ),
    # escalate
    Rule(
        ESCALATE, lambda a: a.order.order_id in a.desk.escalations, "{order_id} is already escalated.", kind=NO_EFFECT
    ),
)

CODES = frozenset(rule.code for rule in RULES if rule.code)


def broken_rule(attempt: Attempt) -> Rule | None:
    """Return the first rule that an attempt breaks, or None where it may go ahead."""
    return next((rule for rule in RULES if attempt.tool in rule.tools and rule.is_broken(attempt)), None)
