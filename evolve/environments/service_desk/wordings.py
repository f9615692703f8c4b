"""What customers write: a few wordings per family, filled in by the family, and how each writes a number."""

from __future__ import annotations

from collections.abc import Mapping

NUMBERS = ("#{}", "{}", "no. {}")
WORDINGS: Mapping[str, tuple[str, ...]] = {
    "cancel_pending": (
        "Please cancel my order {id}. I changed my mind.",
        "I bought the same {thing} twice by mistake. Cancel order {id}, please.",
        "Cancel order {id} for me: I found the {thing} cheaper elsewhere.",
    ),
    "cancel_shipped": (
        "Please cancel my order {id}. I no longer want the {thing}.",
        "I changed my mind about order {id}. Cancel it, please.",
        "Cancel order {id}: I found the {thing} cheaper elsewhere.",
    ),
    "refund_damaged": (
        "The {thing} in my order {id} arrived broken. I want my money back for it.",
        "Order {id} came today, but the {thing} is cracked. Please refund it.",
        "The {thing} from order {id} does not work, it was damaged on the way. Refund, please.",
    ),
    "refund_window": (
        "The {thing} from order {id} turned out to be damaged. Please refund it.",
        "I only now opened order {id}: the {thing} is broken. I want a refund.",
        "Order {id}: you sent me the wrong {thing}. Refund me, please.",
    ),
    "refund_late": (
        "My {thing} came far too late. I paid for fast shipping and want that money back.",
        "The order with the {thing} was late. Please refund whatever I am owed for that.",
        "You delivered the {thing} a week late. Refund what the policy gives me for the delay.",
    ),
    "refund_high": (
        "The {thing} in order {id} arrived broken. Please refund the {price} that it cost.",
        "Order {id}: the {thing} is damaged. I want the {price} for it back.",
        "My {thing} from order {id} has a crack all through. Refund {price}, please.",
    ),
    "refund_undelivered": (
        "Order {id} with the {thing} is nowhere to be seen. Refund me.",
        "I still wait for order {id}. It is late and I want my money back.",
        "My {thing}, order {id}, never came. Please refund it.",
    ),
    "not_owner": (
        "My neighbour changed her mind about order {id}. Please cancel it.",
        "Cancel order {id}, please. I changed my mind.",
        "The {thing} in order {id} is broken. Please refund it.",
    ),
    "exchange_size": (
        "The {thing} in order {id} does not fit. Please exchange it for size {size}.",
        "I need the {thing} from order {id} in {size} instead. Please swap it.",
        "Order {id}: the {thing} is the wrong size for me, send {size}.",
    ),
    "exchange_sold_out": (
        "The {thing} in order {id} does not fit. Please exchange it for size {size}.",
        "I need the {thing} from order {id} in {size} instead. Please swap it.",
        "Order {id}: the {thing} is the wrong size for me, send {size}.",
    ),
    "change_address": (
        "I moved. Please send the {thing} that I ordered to {address}.",
        "The order with the {thing} should go to {address} instead.",
        "New address for my {thing}: {address}. Please change the order.",
    ),
    "address_shipped": (
        "Please deliver order {id} to {address} instead.",
        "I gave you the wrong address for order {id}. It is {address}.",
        "Order {id} must go to {address}, I moved.",
    ),
    "pause_subscription": (
        "I am away for {months} months. Please stop my box, subscription {id}, for that time.",
        "Put my subscription {id} on hold for {months} months, please.",
        "Please pause my monthly box, subscription {id}; {months} months will do.",
    ),
    "change_plan": (
        "I would like the {plan} box from now on, for subscription {id}.",
        "Please move my subscription {id} to {plan}.",
        "Switch subscription {id} to the {plan} plan, please.",
    ),
    "plan_balance": (
        "I would like the {plan} box from now on, for subscription {id}.",
        "Please move my subscription {id} to {plan}.",
        "Switch subscription {id} to the {plan} plan, please.",
    ),
    "subscription_term": (
        "Please end my subscription {id}. I do not need the box any more.",
        "Stop my monthly box, subscription {id}, for good.",
        "I want to cancel subscription {id} right now.",
    ),
    "credit_cap": (
        "Your hotline kept me waiting for an hour. I want {wish} as goodwill.",
        "Nobody answered my three mails. Give me a credit of {wish} for the trouble.",
        "I am disappointed by your service and ask for {wish} of goodwill credit.",
    ),
}
