"""The policy of the service desk: each refusal in its words, each limit on both sides, probes without a trace."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from evolve.environments.service_desk.cases import Draft, Gold
from evolve.environments.service_desk.desk import Customer, Desk, Item, Order, Size, Subscription
from evolve.environments.service_desk.policy import CODES, RULES, reference
from evolve.environments.service_desk.session import CLOSED, NO_TOOL, DeskSession
from evolve.records import Call, ErrorKind, Observation


def desk() -> Desk:
    """One customer with an order in each state and two subscriptions, beside a stranger."""
    orders = [
        Order("O-0001", "C-0001", "pending", [Item("K-0001", "kettle", 20_00)], "1 old road town 1"),
        Order("O-0002", "C-0001", "shipped", [Item("K-0002", "lamp", 30_00)], "1 old road town 1"),
        Order("O-0003", "C-0001", "delivered", [Item("K-0010", "coat S", 40_00), Item("K-0003", "rug", 9_50)], "", 3),
        Order("O-0004", "C-0001", "delivered", [Item("K-0004", "vase", 15_00)], "", 31, late_fee=4_00),
        Order("O-0005", "C-0001", "delivered", [Item("K-0005", "sofa", 150_01), Item("K-0006", "bed", 150_00)], "", 30),
        Order("O-0006", "C-0001", "cancelled", [Item("K-0007", "pan", 11_00)], ""),
        Order("O-0007", "C-0002", "pending", [Item("K-0008", "pot", 12_00)], ""),
        Order("O-0008", "C-0001", "delivered", [Item("K-0009", "cup", 13_00)], "", 5, late_fee=4_25),
    ]
    sizes = [
        Size("K-0010", "coat", "S", 1),
        Size("K-0011", "coat", "M", 2),
        Size("K-0012", "coat", "L", 0),
        Size("K-0013", "vest", "M", 3),
    ]
    subscriptions = [
        Subscription("S-0001", "C-0001", "mini", months=6),
        Subscription("S-0002", "C-0001", "mini", months=5, balance=1),
        Subscription("S-0003", "C-0001", "mini", status="paused"),
        Subscription("S-0004", "C-0001", "mini", status="cancelled"),
        Subscription("S-0005", "C-0002", "mini"),
    ]
    return Desk(
        customers={
            "C-0001": Customer("C-0001", "Ann Ash", "ann@x.example"),
            "C-0002": Customer("C-0002", "Bob Box", "bob@x.example", "gold"),
        },
        orders={order.order_id: order for order in orders},
        subscriptions={this.subscription_id: this for this in subscriptions},
        sizes={size.sku: size for size in sizes},
    )


def session(rows: Desk | None = None, gold: Gold | None = None) -> DeskSession:
    return DeskSession("ticket", Draft("f", "ticket", "C-0001", rows or desk(), gold or Gold((), "done", ())))


def do(this: DeskSession, tool: str, **arguments: object) -> Observation:
    return this.step(Call(tool=tool, arguments=arguments))


def cancel(order: str) -> Call:
    return Call(tool="cancel_order", arguments={"order_id": order, "reason": "changed_mind"})


def refund(order: str, amount: float, reason: str = "damaged") -> Call:
    return Call(tool="refund_order", arguments={"order_id": order, "amount": amount, "reason": reason})


def move(order: str, address: str = "2 New Road, Town 2") -> Call:
    return Call(tool="change_address", arguments={"order_id": order, "address": address})


def exchange(order: str, sku: str) -> Call:
    return Call(tool="exchange_item", arguments={"order_id": order, "new_sku": sku})


def subscription(this: str, action: str, **more: object) -> Call:
    return Call(tool="change_subscription", arguments={"subscription_id": this, "action": action} | more)


def give(customer: str, amount: float) -> Call:
    return Call(tool="issue_credit", arguments={"customer_id": customer, "amount": amount})


def escalate(order: str) -> Call:
    return Call(tool="escalate", arguments={"order_id": order, "queue": "billing"})


NO, NOTHING = ErrorKind.REJECTED, ErrorKind.NO_EFFECT
REFUSALS: list[tuple[Call, ErrorKind, str]] = [
    (cancel("O-0007"), NO, "Refused (not_owner): O-0007 is not the sender's order."),
    (subscription("S-0005", "cancel"), NO, "Refused (not_owner): S-0005 is not the sender's subscription."),
    (give("C-0002", 5), NO, "Refused (not_owner): C-0002 is not the sender."),
    (cancel("O-0006"), NOTHING, "No change: O-0006 is already cancelled."),
    (cancel("O-0002"), NO, "Refused (already_shipped): an order with status shipped cannot be cancelled."),
    (
        cancel("O-0003"),
        NO,
        "Refused (already_delivered): an order with status delivered cannot be cancelled; only damaged, late or wrong "
        "items are refunded.",
    ),
    (refund("O-0006", 11), NOTHING, "No change: O-0006 is cancelled and was paid back in full."),
    (refund("O-0001", 20), NO, "Refused: an order with status pending is not refunded; use cancel_order."),
    (
        refund("O-0002", 30),
        NO,
        "Refused: an order with status shipped is not refunded; use escalate with queue logistics.",
    ),
    (refund("O-0004", 15), NO, "Refused (window_closed): refunds end 30 days after delivery."),
    (refund("O-0003", 9.5, "late"), NO, "Refused (not_late): O-0003 was not late."),
    (refund("O-0008", 13, "late"), NO, "Refused: for reason late the amount is the shipping fee, 4.25."),
    (
        refund("O-0003", 49.5),
        NO,
        "Refused: for reason damaged the amount is the price of the item concerned; get_order shows it.",
    ),
    (
        refund("O-0005", 150.01),
        NO,
        "Refused: billing decides on refunds above 150.00; use escalate with queue billing.",
    ),
    (
        move("O-0002"),
        NO,
        "Refused: an order with status shipped keeps its address; use escalate with queue logistics.",
    ),
    (move("O-0003"), NO, "Refused (already_delivered): O-0003 was delivered."),
    (move("O-0006"), NOTHING, "No change: O-0006 is cancelled."),
    (move("O-0001", "1 OLD road Town 1"), NOTHING, "No change: O-0001 already has this address."),
    (exchange("O-0001", "K-0011"), NO, "Refused (not_delivered): only delivered orders are exchanged."),
    (exchange("O-0004", "K-0011"), NO, "Refused (window_closed): exchanges end 30 days after delivery."),
    (exchange("O-0003", "K-0013"), NO, "Refused: K-0013 is no size of an item of O-0003; take it from get_product."),
    (exchange("O-0003", "K-0010"), NOTHING, "No change: O-0003 already has K-0010."),
    (exchange("O-0003", "K-0012"), NO, "Refused (out_of_stock): K-0012 is sold out."),
    (subscription("S-0004", "resume"), NOTHING, "No change: S-0004 is already cancelled."),
    (subscription("S-0003", "pause", months=1), NOTHING, "No change: S-0003 is already paused."),
    (subscription("S-0001", "resume"), NOTHING, "No change: S-0001 is already active."),
    (subscription("S-0001", "pause", months=4), NO, "Refused: a pause needs months, 1 to 3."),
    (subscription("S-0001", "cancel", months=1), NO, "Refused: months goes with pause only."),
    (
        subscription("S-0002", "cancel"),
        NO,
        "Refused (minimum_term): a subscription runs at least 6 months before it can be cancelled.",
    ),
    (subscription("S-0001", "change_plan"), NO, "Refused: change_plan needs plan."),
    (subscription("S-0001", "cancel", plan="mini"), NO, "Refused: plan goes with change_plan only."),
    (subscription("S-0001", "change_plan", plan="mini"), NOTHING, "No change: the plan is already mini."),
    (
        subscription("S-0002", "change_plan", plan="family"),
        NO,
        "Refused (balance_due): the plan stays while a balance is open.",
    ),
    (
        subscription("S-0003", "change_plan", plan="family"),
        NO,
        "Refused: a paused subscription keeps its plan; resume it first.",
    ),
    (give("C-0001", 10.01), NO, "Refused: credit for tier standard is at most 10.00; issue that."),
]
REPEATS: list[tuple[Call, str]] = [
    (refund("O-0003", 9.5), "No change: 9.5 is already refunded."),
    (give("C-0001", 10), "No change: this ticket already has a credit."),
    (escalate("O-0001"), "No change: O-0001 is already escalated."),
]


@pytest.mark.parametrize(("call", "kind", "text"), REFUSALS, ids=[text[:60] for _, _, text in REFUSALS])
def test_a_refusal_has_its_words_and_kind_and_changes_nothing(call: Call, kind: ErrorKind, text: str) -> None:
    """Each rule answers in its own words with its kind, and the database stays as it was."""
    rows = desk()
    this = session()
    answer = this.step(call)
    with_reference = text.replace("):", f", ref {reference('ticket', call)}):", 1)
    assert (answer.error_kind, answer.text) == (kind, with_reference)
    assert this._desk.digest == rows.digest


@pytest.mark.parametrize(("call", "text"), REPEATS, ids=[call.tool for call, _ in REPEATS])
def test_a_write_done_twice_has_no_effect(call: Call, text: str) -> None:
    """The second of two equal writes is answered with no_effect."""
    this = session()
    assert this.step(call).error_kind is None
    answer = this.step(call)
    assert (answer.error_kind, answer.text) == (NOTHING, text)


def test_a_reference_belongs_to_its_ticket_and_its_call() -> None:
    """The same call in the same ticket has the same reference; another call or ticket has another."""
    call, other = cancel("O-0002"), cancel("O-0003")
    assert reference("ticket", call) == reference("ticket", call)
    assert len({reference("ticket", call), reference("ticket", other), reference("other", call)}) == 3
    assert re.fullmatch("[0-9A-F]{4}", reference("ticket", call))


def test_every_rule_of_the_policy_is_in_these_tables() -> None:
    """No rule goes untested: the tables hold as many distinct texts as the policy has rules."""
    texts = [row[2] for row in REFUSALS] + [row[1] for row in REPEATS]
    assert len(set(texts)) == len(RULES)
    assert {text.split("(")[1].split(")")[0] for text in texts if text.startswith("Refused (")} == CODES


@pytest.mark.parametrize(
    ("call", "check"),
    [
        (
            cancel("O-0001"),
            lambda d: d.orders["O-0001"].status == "cancelled" and d.orders["O-0001"].refunds == [20_00],
        ),
        (refund("O-0003", 9.5), lambda d: d.orders["O-0003"].refunds == [9_50]),
        (refund("O-0005", 150.0), lambda d: d.orders["O-0005"].refunds == [150_00]),
        (refund("O-0008", 4.25, "late"), lambda d: d.orders["O-0008"].refunds == [4_25]),
        (move("O-0001"), lambda d: d.orders["O-0001"].address == "2 new road town 2"),
        (
            exchange("O-0003", "K-0011"),
            lambda d: (
                [i.sku for i in d.orders["O-0003"].items] == ["K-0011", "K-0003"] and d.sizes["K-0011"].stock == 1
            ),
        ),
        (
            subscription("S-0001", "pause", months=3),
            lambda d: (d.subscriptions["S-0001"].status, d.subscriptions["S-0001"].paused_for) == ("paused", 3),
        ),
        (subscription("S-0003", "resume"), lambda d: d.subscriptions["S-0003"].status == "active"),
        (subscription("S-0001", "cancel"), lambda d: d.subscriptions["S-0001"].status == "cancelled"),
        (subscription("S-0001", "change_plan", plan="family"), lambda d: d.subscriptions["S-0001"].plan == "family"),
        (give("C-0001", 10), lambda d: d.credits == {"C-0001": 10_00}),
        (escalate("O-0002"), lambda d: d.escalations == {"O-0002": "billing"}),
    ],
    ids=lambda value: value.tool if isinstance(value, Call) else "",
)
def test_an_allowed_write_changes_its_row(call: Call, check: Callable[[Desk], bool]) -> None:
    """What the policy allows, limits included, is done."""
    this = session()
    answer = this.step(call)
    assert answer.error_kind is None, answer.text
    assert check(this._desk)


@pytest.mark.parametrize(
    ("tool", "arguments", "text"),
    [
        ("get_order", {}, "order_id is missing."),
        ("get_order", {"order_id": "O-0001", "id": 1}, "id is not an argument of get_order."),
        ("get_order", {"order_id": 1}, "order_id must be a string."),
        ("get_order", {"order_id": "#0001"}, "order_id must be O- and four digits."),
        ("get_order", {"order_id": "O-9999"}, "order_id is unknown: O-9999."),
        ("get_subscription", {"subscription_id": "0001"}, "subscription_id must be S- and four digits."),
        ("get_product", {"sku": "coat"}, "sku must be K- and four digits."),
        ("find_customer", {"email": "Ann Ash"}, "email must be an email address."),
        ("find_customer", {"email": "no@x.example"}, "email is unknown: no@x.example."),
        (
            "cancel_order",
            {"order_id": "O-0001", "reason": "canceled"},
            "reason must be one of changed_mind, ordered_twice, found_cheaper.",
        ),
        ("issue_credit", {"customer_id": "C-0001", "amount": "5"}, "amount must be a number above 0."),
        ("issue_credit", {"customer_id": "C-0001", "amount": True}, "amount must be a number above 0."),
        ("issue_credit", {"customer_id": "C-0001", "amount": -5}, "amount must be a number above 0."),
        ("issue_credit", {"customer_id": "C-0001", "amount": float("nan")}, "amount must be a number above 0."),
        (
            "change_subscription",
            {"subscription_id": "S-0001", "action": "pause", "months": "2"},
            "months must be an integer.",
        ),
        ("change_address", {"order_id": "O-0001", "address": " "}, "address must not be empty."),
        (
            "close_ticket",
            {"resolution": "closed", "statement": "x"},
            "resolution must be one of done, refused, escalated.",
        ),
        ("close_ticket", {"resolution": "done", "statement": "x" * 301}, "statement must be at most 300 characters."),
    ],
)
def test_wrong_arguments_are_named(tool: str, arguments: dict[str, object], text: str) -> None:
    """An invalid call says which argument is wrong and, for a closed set, what is allowed."""
    answer = session().step(Call(tool=tool, arguments=arguments))
    assert (answer.error_kind, answer.text) == (ErrorKind.INVALID_ARGS, f"Invalid arguments: {text}")
    assert not answer.done


def test_an_unknown_tool_and_plain_talk_are_observations() -> None:
    """A tool that is not there and a message without a call are answered, not raised."""
    this = session()
    assert do(this, "return_order").error_kind is ErrorKind.UNKNOWN_TOOL
    talk = this.say("All done!")
    assert (talk.error_kind, talk.text, talk.done) == (ErrorKind.MALFORMED_CALL, NO_TOOL, False)


def test_closing_ends_the_session() -> None:
    """After close_ticket nothing changes any more and each answer says so."""
    this = session()
    assert do(this, "close_ticket", resolution="done", statement="x").done
    answer = this.step(cancel("O-0001"))
    assert (answer.text, answer.error_kind, answer.done) == (CLOSED, NOTHING, True)
    assert this.say("hello").done
    assert this._desk.digest == desk().digest


def test_a_probe_reads_and_leaves_no_trace() -> None:
    """A probe answers like the tool, is no step, and refuses whatever could change a row."""
    this = session()
    read = Call(tool="get_order", arguments={"order_id": "O-0001"})
    assert this.probe(read).text == session().step(read).text
    for tool in this.tools:
        answer = this.probe(Call(tool=tool.name, arguments={}))
        assert answer.error_kind is (ErrorKind.INVALID_ARGS if tool.read_only else ErrorKind.REJECTED)
    assert this.probe(Call(tool="peek", arguments={})).error_kind is ErrorKind.UNKNOWN_TOOL
    assert this._desk.digest == desk().digest


def test_read_only_tools_change_nothing() -> None:
    """Every tool marked read-only leaves the database as it was."""
    this = session()
    do(this, "find_customer", email="ann@x.example")
    do(this, "get_order", order_id="O-0001")
    do(this, "get_subscription", subscription_id="S-0001")
    do(this, "get_product", sku="K-0010")
    assert {tool.name for tool in this.tools if tool.read_only} == {
        "find_customer",
        "get_order",
        "get_product",
        "get_subscription",
    }
    assert this._desk.digest == desk().digest
