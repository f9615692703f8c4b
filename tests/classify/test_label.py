"""The order of the classes, recovery, and the judge."""

import pytest
from handmade import DESK, HOUSE, SHOP, act, episode, step

from evolve.classify.label import class_counts, label_failure
from evolve.records import Episode, FailureClass, Tool

CANCEL = {"order_id": "O-7", "reason": "changed_mind"}
WRONG_NAME = step("cancelOrder", CANCEL, error="unknown_tool")
REFUSED = step("cancel_order", CANCEL, answer="Shipped orders cannot be cancelled.", error="rejected")
LOOK_UP = step("get_order", {"order_id": "O-7"})
CLOSE = step("close_ticket", {"resolution": "done", "statement": "Done."}, done=True)


def judge_as(failure_class: FailureClass | None):
    def judge(seen: Episode, tools: tuple[Tool, ...]) -> FailureClass | None:
        return failure_class

    return judge


def test_an_act_that_never_ran_is_an_action_failure_even_if_a_loop_follows() -> None:
    """The earliest class wins over what came of it."""
    label = label_failure(episode(WRONG_NAME, LOOK_UP, LOOK_UP, LOOK_UP, stop="step_limit"), DESK)
    assert (label.failure_class, label.signature, label.step) == (FailureClass.ACTION, "unknown_tool:cancel_order", 0)


def test_a_recovered_slip_is_no_action_failure() -> None:
    """Once the meant tool ran clean, the slip does not explain the failure."""
    label = label_failure(episode(WRONG_NAME, LOOK_UP, step("cancel_order", CANCEL), CLOSE), DESK)
    assert label.failure_class is FailureClass.REASONING


@pytest.mark.parametrize(("later", "is_action"), [("O-1512", False), ("O-2323", True)])
def test_an_id_out_of_form_is_recovered_by_the_id_it_meant(later: str, is_action: bool) -> None:
    """A clean call with another id does not make up for the slip."""
    slip = step("find_order", {"order_id": "1512"}, error="invalid_args")
    clean = [step("find_order", {"order_id": later}, answer=str(n)) for n in range(3)]
    label = label_failure(episode(slip, *clean), SHOP)
    assert (label.failure_class is FailureClass.ACTION) is is_action


def test_slips_that_fill_half_of_the_episode_dominate_it() -> None:
    """An episode that is mostly slips is an action failure, recovered or not; the most frequent slip names it."""
    slips = [
        act("eat apple", error="no_effect"),
        act("eat pear", error="no_effect"),
        act("opeen door", error="no_effect"),
    ]
    seen = episode(slips[2], *slips[:2], act("look"), act("open door"), admissible=("look", "open door"))
    label = label_failure(seen, HOUSE)
    assert (label.signature, label.step) == ("not_admissible:take_action:none", 1)


def test_a_refusal_that_ended_the_matter_is_a_contract_failure() -> None:
    """All calls could be run, and a rule of the environment was broken."""
    label = label_failure(episode(LOOK_UP, REFUSED, CLOSE), DESK)
    assert (label.failure_class, label.step, label.judged_by) == (FailureClass.CONTRACT, 1, "signal")


def test_a_loop_of_valid_calls_is_a_trajectory_failure() -> None:
    """Neither class before applies, and the episode went round."""
    assert label_failure(episode(*[act("look")] * 4), HOUSE).failure_class is FailureClass.TRAJECTORY


def test_a_clean_wrong_episode_is_a_reasoning_failure_at_its_last_step() -> None:
    """Without any signal the protocol was respected and the answer is wrong."""
    label = label_failure(episode(LOOK_UP, step("cancel_order", CANCEL), CLOSE), DESK)
    assert (label.failure_class, label.signature, label.step) == (FailureClass.REASONING, "wrong_result", 2)


def test_an_episode_without_steps_can_be_labelled() -> None:
    """Nothing happened at all: no signal, so reasoning."""
    assert label_failure(episode(), DESK).failure_class is FailureClass.REASONING


def test_the_judge_moves_a_label_over_the_contract_boundary_and_is_named() -> None:
    """A judge's word is marked as such, in both directions."""
    contract = label_failure(episode(LOOK_UP, REFUSED, CLOSE), DESK, judge_as(FailureClass.REASONING))
    clean = episode(LOOK_UP, step("cancel_order", CANCEL), CLOSE)
    reasoning = label_failure(clean, DESK, judge_as(FailureClass.CONTRACT))
    assert (contract.failure_class, contract.judged_by) == (FailureClass.REASONING, "judge")
    assert (reasoning.signature, reasoning.judged_by) == ("judged:contract", "judge")


def test_the_judge_has_no_say_outside_its_boundary() -> None:
    """It is not asked about action and trajectory, and its answers of those classes are ignored."""
    loop = label_failure(episode(*[act("look")] * 4), HOUSE, judge_as(FailureClass.REASONING))
    right = episode(LOOK_UP, step("cancel_order", CANCEL), CLOSE)
    clean = label_failure(right, DESK, judge_as(FailureClass.ACTION))
    silent = label_failure(right, DESK, judge_as(None))
    assert [label.judged_by for label in (loop, clean, silent)] == ["signal"] * 3
    assert loop.failure_class is FailureClass.TRAJECTORY


def test_a_success_has_no_label() -> None:
    """Only failures are classified."""
    with pytest.raises(ValueError, match="no failure"):
        label_failure(episode(CLOSE, success=True), DESK)


def test_counts_name_all_four_classes_in_order() -> None:
    """A class without failures is there with 0."""
    labels = [label_failure(episode(*[act("look")] * 4), HOUSE)] * 2
    assert [(c.value, n) for c, n in class_counts(labels).items()] == [
        ("action", 0),
        ("contract", 0),
        ("trajectory", 2),
        ("reasoning", 0),
    ]
