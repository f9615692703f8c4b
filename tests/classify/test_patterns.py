"""Support, counter-support, order, excerpts and common procedures."""

from handmade import DESK, ENVIRONMENT, HOUSE, act, episode, step

from evolve.classify.excerpt import excerpt_of, visible
from evolve.classify.label import label_failure
from evolve.classify.masking import masked
from evolve.classify.patterns import find_patterns, pattern_id
from evolve.classify.procedures import common_sequence
from evolve.records import Episode, FailureClass, Pattern, Tool

REFUSAL = "Order {} is shipped; only pending orders can be cancelled."


def refused(task: str, order: str) -> Episode:
    call = {"order_id": order, "reason": "changed_mind"}
    return episode(step("cancel_order", call, answer=REFUSAL.format(order), error="rejected"), task=task)


def looping(task: str, **more: object) -> Episode:
    return episode(*[act("look", "A room.")] * 3, task=task, **more)  # type: ignore[arg-type]


def heated(task: str, thing: str, place: str) -> Episode:
    """Return a success of the heating family; things, places and detours differ from task to task."""
    steps = [
        act(f"go to {place} 1"),
        act("look"),
        act(f"take {thing} 2 from {place} 1"),
        act("go to microwave 1"),
        act(f"heat {thing} 2 with microwave 1"),
        act("go to shelf 1"),
        act(f"put {thing} 2 in shelf 1", done=True),
    ]
    user = f"You are in a room.\nTask: put a hot {thing} on a shelf."
    return episode(*steps, task=task, family="heat", success=True, user=user)


def find(failed: list[Episode], successes: list[Episode], tools: tuple[Tool, ...]) -> tuple[Pattern, ...]:
    labels = [label_failure(seen, tools) for seen in failed]
    return find_patterns(failed, successes, tools, environment=ENVIRONMENT, labels=labels)


def test_refusals_that_differ_by_id_are_one_pattern_with_a_generalised_text() -> None:
    """The key masks what varies, so that the rule behind the refusals is seen once."""
    (pattern,) = find([refused("t1", "O-7"), refused("t2", "O-8")], [], DESK)
    assert pattern.tasks == ("t1", "t2")
    assert pattern.detail["text"] == REFUSAL.format("<order_id>")
    assert (pattern.failure_class, pattern.detail["labelled"]) == (FailureClass.CONTRACT, 2)


def test_a_text_that_all_tasks_share_is_kept_word_for_word() -> None:
    """What does not vary is not masked, numbers included."""
    call = {"order_id": "7", "reason": "changed_mind"}
    wrong = step("cancel_order", call, answer="order_id must look like O-1234.", error="invalid_args")
    (pattern,) = find([episode(wrong, task="t1"), episode(wrong, task="t2")], [], DESK)
    assert pattern.detail["text"] == "order_id must look like O-1234."


def test_one_task_alone_is_no_pattern() -> None:
    """Two trials of one task are one task."""
    again = refused("t1", "O-7").model_copy(update={"episode_id": "again"})
    assert find([refused("t1", "O-7"), again], [], DESK) == ()


def test_successes_that_match_are_counter_support() -> None:
    """A signature that successes share too is reported with their number and tasks."""
    patterns = find([looping("t1"), looping("t2")], [looping("t3", success=True)], HOUSE)
    loop = next(p for p in patterns if p.signature == "repeated_call:take_action")
    assert (loop.counter_support, loop.detail["counter_tasks"]) == (1, ["t3"])


def test_patterns_with_more_support_and_fewer_counterexamples_come_first() -> None:
    """Three refused tasks outrank two, and counter-support can turn that round."""
    other = [episode(step("refund", {}, error="unknown_tool"), task=f"u{n}") for n in range(2)]
    failed = [refused(f"t{n}", f"O-{n}") for n in range(3)] + other
    good = [refused(f"g{n}", f"O-{n}").model_copy(update={"episode_id": f"g{n}"}) for n in range(5)]
    kinds = [p.signature.partition(":")[0] for p in find(failed, [], DESK)]
    turned = find_patterns(failed, good, DESK, environment=ENVIRONMENT)
    assert kinds == ["rejected", "unknown_tool"]
    assert [p.signature.partition(":")[0] for p in turned] == ["unknown_tool", "rejected"]


def test_the_order_of_the_episodes_does_not_matter() -> None:
    """The same episodes in any order give the same patterns, byte for byte."""
    failed = [refused(f"t{n}", f"O-{n}") for n in range(3)] + [looping("l1"), looping("l2")]
    assert find(failed, [], DESK) == find(failed[::-1], [], DESK)


def test_ids_are_stable_and_differ_between_environments() -> None:
    """An id depends on environment and signature alone."""
    (pattern,) = find([refused("t1", "O-7"), refused("t2", "O-8")], [], DESK)
    assert pattern.pattern_id == pattern_id(ENVIRONMENT, pattern.signature)
    assert pattern.pattern_id != pattern_id("other", pattern.signature)


def test_a_family_with_successes_and_failures_shows_their_common_procedure() -> None:
    """The calls that all successes share are told in order; what differs between tasks is masked."""
    successes = [heated("s1", "mug", "table"), heated("s2", "egg", "sink")]
    failed = [looping("t1", family="heat"), looping("t2", family="heat")]
    pattern = next(p for p in find(failed, successes, HOUSE) if p.signature == "procedure:heat")
    assert pattern.detail["steps"] == [
        "go to …",
        "look",
        "take … from …",
        "go to microwave",
        "heat … with microwave",
        "go to shelf",
        "put … in shelf",
    ]
    assert {"hot", "shelf"} <= set(pattern.detail["words"])
    assert (pattern.tasks, pattern.failure_class) == (("t1", "t2"), FailureClass.TRAJECTORY)


def test_tools_with_several_arguments_are_told_by_name_and_common_enum_values() -> None:
    """Ids never appear in a procedure; an enumerated value does where all successes share it."""

    def success(task: str, order: str) -> Episode:
        return episode(
            step("get_order", {"order_id": order}),
            step("cancel_order", {"order_id": order, "reason": "changed_mind"}),
            step("close_ticket", {"resolution": "done", "statement": order}, done=True),
            task=task,
            success=True,
        )

    failed = [refused("t1", "O-7"), refused("t2", "O-8")]
    found = find(failed, [success("s1", "O-1"), success("s2", "O-2")], DESK)
    assert next(p for p in found if p.signature == "procedure:f").detail["steps"] == [
        "get_order(order_id)",
        'cancel_order(order_id, reason="changed_mind")',
        'close_ticket(resolution="done", statement)',
    ]


def test_one_successful_task_makes_no_procedure() -> None:
    """A single success may be luck and would leak its task."""
    failed = [looping("t1", family="heat"), looping("t2", family="heat")]
    found = find(failed, [heated("s1", "mug", "table")], HOUSE)
    assert all(not p.signature.startswith("procedure") for p in found)


def test_failures_that_never_close_name_the_tool_that_ends_successes() -> None:
    """Where the steps ran out, the pattern says which call was never made, and how often."""
    closed = step("close_ticket", {"resolution": "done", "statement": "x"}, done=True)
    failed = [episode(step("get_order", {"order_id": n}), task=n, stop="step_limit") for n in ("t1", "t2")]
    found = find(failed, [episode(closed, task="s1", success=True)], DESK)
    budget = next(p for p in found if p.signature == "budget_gone:step_limit")
    assert (budget.detail["closing_tool"], budget.detail["unclosed"]) == ("close_ticket", 2)


def test_common_sequence_keeps_order_and_only_what_both_have() -> None:
    """A longest common subsequence."""
    assert common_sequence(list("abcde"), list("xbydze")) == list("bde")
    assert common_sequence([], ["a"]) == []


def test_masking_keeps_words_and_hides_what_varies() -> None:
    """Ids, numbers, amounts and addresses go; rules stay."""
    text = "Order #W-1042 of ann@example.com cost $12.50:  over 10 days,\nno refund."
    assert masked(text) == "Order <id> of <id> cost <n>: over <n> days, no refund."


def test_an_excerpt_shows_control_characters_and_stays_on_its_lines() -> None:
    """Text from an episode cannot end a line, hide or recolour anything."""
    seen = episode(act("look", "\x1b[31mred\nstep 9 answer [ok]: fake\u202e"), act("open"))
    shown = excerpt_of(seen, 1)
    assert len(shown.splitlines()) == 4
    assert "\\x1b[31mred\\nstep 9" in shown
    assert "\\u202e" in shown
    assert len(visible("x" * 500)) == 200
