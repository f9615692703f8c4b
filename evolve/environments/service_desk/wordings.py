"""What customers write: a few wordings per family, filled in by the family. Numbers come as people write them."""

from __future__ import annotations

from collections.abc import Mapping

WORDINGS: Mapping[str, tuple[str, ...]] = {
    "cancel_pending": (
        "Please cancel my order #{number}. I changed my mind.",
        "I bought the same {thing} twice by mistake. Cancel order {number}, please.",
        "Cancel order no. {number} for me: I found the {thing} cheaper elsewhere.",
    ),
    "cancel_shipped": (
        "Please cancel my order #{number}. I no longer want the {thing}.",
        "I changed my mind about order {number}. Cancel it, please.",
        "Cancel order no. {number}: I found the {thing} cheaper elsewhere.",
    ),
    "refund_damaged": (
        "The {thing} in my order #{number} arrived broken. I want my money back for it.",
        "Order {number} came today, but the {thing} is cracked. Please refund it.",
        "The {thing} from order no. {number} does not work, it was damaged on the way. Refund, please.",
    ),
    "refund_window": (
        "The {thing} from order #{number} turned out to be damaged. Please refund it.",
        "I only now opened order {number}: the {thing} is broken. I want a refund.",
        "Order no. {number}: you sent me the wrong {thing}. Refund me, please.",
    ),
    "refund_late": (
        "My {thing} came far too late. I paid for fast shipping and want that money back.",
        "The order with the {thing} was late. Please refund whatever I am owed for that.",
        "You delivered the {thing} a week late. Refund what the policy gives me for the delay.",
    ),
    "refund_high": (
        "The {thing} in order #{number} arrived broken. Please refund its price.",
        "Order {number}: the {thing} is damaged. I want the money for it back.",
        "My {thing} from order no. {number} has a crack all through. Refund it, please.",
    ),
    "refund_undelivered": (
        "Order #{number} with the {thing} is nowhere to be seen. Refund me.",
        "I still wait for order {number}. It is late and I want my money back.",
        "My {thing}, order no. {number}, never came. Please refund it.",
    ),
    "not_owner": (
        "My neighbour changed her mind about order #{number}. Please cancel it.",
        "Cancel order {number}, please. I changed my mind.",
        "The {thing} in order no. {number} is broken. Please refund it.",
    ),
    "exchange_size": (
        "The {thing} in order #{number} does not fit. Please exchange it for size {size}.",
        "I need the {thing} from order {number} in {size} instead. Please swap it.",
        "Order no. {number}: the {thing} is the wrong size for me, send {size}.",
    ),
    "exchange_sold_out": (
        "The {thing} in order #{number} does not fit. Please exchange it for size {size}.",
        "I need the {thing} from order {number} in {size} instead. Please swap it.",
        "Order no. {number}: the {thing} is the wrong size for me, send {size}.",
    ),
    "change_address": (
        "I moved. Please send the {thing} that I ordered to {address}.",
        "The order with the {thing} should go to {address} instead.",
        "New address for my {thing}: {address}. Please change the order.",
    ),
    "address_shipped": (
        "Please deliver order #{number} to {address} instead.",
        "I gave you the wrong address for order {number}. It is {address}.",
        "Order no. {number} must go to {address}, I moved.",
    ),
    "pause_subscription": (
        "I am away for {months} months. Please stop my box for that time.",
        "Put my subscription on hold for {months} months, please.",
        "Please pause my monthly box, {months} months will do.",
    ),
    "change_plan": (
        "I would like the {plan} box from now on.",
        "Please move my subscription to {plan}.",
        "Switch me to the {plan} plan, please.",
    ),
    "plan_balance": (
        "I would like the {plan} box from now on.",
        "Please move my subscription to {plan}.",
        "Switch me to the {plan} plan, please.",
    ),
    "subscription_term": (
        "Please end my subscription. I do not need the box any more.",
        "Stop my monthly box for good.",
        "I want to cancel my subscription right now.",
    ),
    "credit_cap": (
        "Your hotline kept me waiting for an hour. I want {wish} as goodwill.",
        "Nobody answered my three mails. Give me a credit of {wish} for the trouble.",
        "I am disappointed by your service and ask for {wish} of goodwill credit.",
    ),
}
