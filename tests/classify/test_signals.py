"""Each signal, where it must be seen and where it must not."""

import pytest
from handmade import DESK, HOUSE, SHOP, act, episode, step

from evolve.classify.signals import find_signals
from evolve.records import Episode, FailureClass, Tool

ACTIONS = ("open fridge 1", "go to drawer 1", "look")
CANCEL = {"order_id": "O-7", "reason": "changed_mind"}
CLOSE = {"resolution": "done", "statement": "It is done."}


def signatures(seen: Episode, tools: tuple[Tool, ...]) -> list[str]:
    return [signal.signature for signal in find_signals(seen, tools)]


POSITIVE = [
    ("call_as_text:code", episode(step(text="get_order('O-7')", error="malformed_call")), DESK),
    ("call_as_text:admissible", episode(step(text="> look"), admissible=ACTIONS), HOUSE),
    ("malformed", episode(step(text="", error="malformed_call")), DESK),
    ("bad_json:get_order", episode(step("get_order", "{order", error="malformed_call")), DESK),
    ("unknown_tool:get_order", episode(step("getOrder", {"order_id": "O-7"}, error="unknown_tool")), DESK),
    ("unknown_tool:none", episode(step("refund", {}, error="unknown_tool")), DESK),
    ("wrong_argument_name:get_order.order_id", episode(step("get_order", {"id": "O-7"}, error="invalid_args")), DESK),
    ("missing_argument:cancel_order.reason", episode(step("cancel_order", {"order_id": "O-7"})), DESK),
    (
        "outside_enum:cancel_order.reason:near",
        episode(step("cancel_order", {**CANCEL, "reason": "Changed Mind"}, error="invalid_args")),
        DESK,
    ),
    (
        "outside_enum:cancel_order.reason:none",
        episode(step("cancel_order", {**CANCEL, "reason": "bored"}, error="invalid_args")),
        DESK,
    ),
    ("outside_pattern:order_id:near", episode(step("find_order", {"order_id": "#1512"}, error="invalid_args")), SHOP),
    ("outside_pattern:order_id:none", episode(step("find_order", {"order_id": "S-1512"}, error="invalid_args")), SHOP),
    ("not_admissible:take_action:near", episode(act("open the fridge", error="no_effect"), admissible=ACTIONS), HOUSE),
    ("not_admissible:take_action:none", episode(act("eat apple", error="no_effect"), admissible=ACTIONS), HOUSE),
    (
        "rejected:Order <order_id> is shipped; only pending orders can be cancelled.",
        episode(
            step(
                "cancel_order",
                CANCEL,
                answer="Order O-7 is shipped; only pending orders can be cancelled.",
                error="rejected",
            )
        ),
        DESK,
    ),
    ("no_effect:Nothing happens.", episode(act("look", "Nothing happens.", error="no_effect")), HOUSE),
    (
        "closed_early:close_ticket",
        episode(step("get_order", {"order_id": "O-7"}), step("close_ticket", CLOSE, done=True)),
        DESK,
    ),
    ("repeated_call:take_action", episode(act("look"), act("look"), act("look")), HOUSE),
    ("oscillation:take_action", episode(act("a", "1"), act("b", "2"), act("a", "3"), act("b", "4")), HOUSE),
    ("stagnation", episode(*(act(f"go {n}", "Same.") for n in range(6))), HOUSE),
    ("text_only", episode(step(text="Let me think."), step(text="Hmm.")), HOUSE),
    ("budget_gone:step_limit", episode(act("look"), stop="step_limit"), HOUSE),
    ("budget_gone:context_full", episode(act("look"), stop="context_full"), HOUSE),
]

NEGATIVE = [
    ("call_as_text", episode(step(text="Please tell me your order.")), DESK),
    ("call_as_text", episode(step("get_order", {"order_id": "O-7"}, text="get_order('O-7')")), DESK),
    ("malformed", episode(step(text="Hello", error="malformed_call")), DESK),
    ("bad_json", episode(step("get_order", {"order_id": "O-7"})), DESK),
    ("unknown_tool", episode(step("get_order", {"order_id": "O-7"})), DESK),
    ("wrong_argument_name", episode(step("get_order", {"order_id": "O-7"})), DESK),
    ("wrong_argument_name", episode(step("refund", {"id": "O-7"})), DESK),
    ("missing_argument", episode(step("get_order", {"id": "O-7"})), DESK),
    ("outside_enum", episode(step("cancel_order", CANCEL)), DESK),
    ("outside_pattern", episode(step("find_order", {"order_id": "O-1512", "note": "#1512"})), SHOP),
    ("outside_pattern", episode(step("get_order", {"order_id": "1512"})), DESK),
    ("rejected", episode(step("find_order", {"order_id": "1512", "note": "x"}, error="invalid_args")), SHOP),
    ("not_admissible", episode(act("look", error="no_effect"), admissible=ACTIONS), HOUSE),
    ("not_admissible", episode(act("search for mugs"), admissible=ACTIONS), HOUSE),
    ("not_admissible", episode(act("eat apple", error="no_effect")), HOUSE),
    ("rejected", episode(step("cancel_order", CANCEL)), DESK),
    ("rejected", episode(step("cancel_order", {"order_id": "O-7"}, error="invalid_args")), DESK),
    ("no_effect", episode(act("eat apple", error="no_effect"), admissible=ACTIONS), HOUSE),
    ("closed_early", episode(step("cancel_order", CANCEL), step("close_ticket", CLOSE, done=True)), DESK),
    ("closed_early", episode(step("get_order", {"order_id": "O-7"}), stop="step_limit"), DESK),
    ("repeated_call", episode(act("look", "1"), act("look", "2"), act("look", "3")), HOUSE),
    ("oscillation", episode(act("a"), act("b"), act("a"), act("c")), HOUSE),
    ("oscillation", episode(act("a"), act("a"), act("a"), act("a")), HOUSE),
    ("stagnation", episode(*(act(f"go {n}", f"Room {n}.") for n in range(9))), HOUSE),
    ("text_only", episode(step(text="Let me think."), act("look"), step(text="Hmm.")), HOUSE),
    ("budget_gone", episode(act("look", done=True)), HOUSE),
]


@pytest.mark.parametrize(("signature", "seen", "tools"), POSITIVE, ids=[s for s, _, _ in POSITIVE])
def test_signal_is_seen(signature: str, seen: Episode, tools: tuple[Tool, ...]) -> None:
    """An episode with the fault gives the signal with its key."""
    assert signature in signatures(seen, tools)


@pytest.mark.parametrize(("kind", "seen", "tools"), NEGATIVE)
def test_signal_is_not_seen_without_the_fault(kind: str, seen: Episode, tools: tuple[Tool, ...]) -> None:
    """An episode that only resembles the fault does not give the signal."""
    assert kind not in [signature.partition(":")[0] for signature in signatures(seen, tools)]


def test_every_signal_kind_has_both_tests() -> None:
    """No finder is without a case where it speaks and one where it is silent."""
    from evolve.classify.signals import FINDERS

    kinds = {find.__name__ for finders in FINDERS.values() for find in finders}
    assert kinds == {s.partition(":")[0] for s, _, _ in POSITIVE} == {kind for kind, _, _ in NEGATIVE}


def test_a_blocked_step_gives_no_signal_of_its_call() -> None:
    """What the harness already caught is not counted again."""
    blocked = step("getOrder", {"order_id": "O-7"}, is_blocked=True, answer="No such tool.")
    assert signatures(episode(blocked), DESK) == []


def test_a_signal_points_at_its_step_and_class() -> None:
    """The evidence step is the step with the fault, and the kind decides the class."""
    (signal,) = find_signals(episode(act("look"), act("eat", error="no_effect"), admissible=ACTIONS), HOUSE)
    assert (signal.step, signal.failure_class) == (1, FailureClass.ACTION)
