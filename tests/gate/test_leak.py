"""The leak lint: what gives one training task away is found, what belongs to the domain is not."""

from __future__ import annotations

import base64
import hashlib

import pytest

from evolve.gate.leak import Leak, TaskCorpus, find_leaks

CORPUS = TaskCorpus(
    tasks={
        "desk-train-017": "Customer Yusuf Tamm asks to cancel order W48213 because the candle arrived broken today.",
        "desk-train-018": "Customer Ines Vogel wants the order W77120 sent to the new address in Bremen instead.",
        "desk-train-019": "Please refund order W90001 to the gift card. The order was cancelled on 2024-03-07.",
    },
    traces={
        "desk-train-017": ("order W48213: status pending, total 1,249.50", "you see a mug 3 on shelf 1"),
        "desk-train-018": (
            "order W77120: status shipped, total 318.00",
            "you see a mug 1 on shelf 1. The order was cancelled",
        ),
        "desk-train-019": (
            "order W90001: status pending, total 75.00",
            "you see a mug 1 on shelf 1. 45 minutes, 500 points",
        ),
    },
    common=(
        "cancel_order: cancel a pending order. Statuses: pending, shipped, delivered. The house rules of Arvo apply.",
    ),
    gold={"desk-train-017": ("refund of 87.35", "CODE-PX"), "desk-train-018": ("pending",)},
)
SEED = {"harness.toml": b'schema_version = 1\nenvironment = "desk"\n'}


def leaks_of(file: str, text: str) -> tuple[Leak, ...]:
    return find_leaks(SEED, {**SEED, file: text.encode()}, CORPUS)


def rule(body: str) -> str:
    return f"""from evolve.rules import PASS, Block, action_rule

@action_rule(id="action.pending-only", strength="block", evidence="refused in 7 tasks")
def pending_only(view, memory):
    {body}
    return PASS
"""


@pytest.mark.parametrize(
    ("body", "kind", "literal"),
    [
        ('if "W48213" in view.task: return Block("no")', "literal", "w48213"),
        ('if "W4" + "8213" in view.task: return Block("no")', "literal", "w48213"),
        ('if ("W4" "82" "13") in view.task: return Block("no")', "literal", "w48213"),
        ('x = "".join(["W4", "82", "13"])', "literal", "w48213"),
        ('x = ["W4", "82", "13"]', "literal", "w48213"),
        ('a = "W4"; b = "8213"; x = f"{a}{b}"', "literal", "w48213"),
        ('x = "31284W"[::-1]', "literal", "w48213"),
        ('x = chr(87) + "48213"', "literal", "w48213"),
        ('x = b"W48213"', "literal", "w48213"),
        ("x = 1249.5", "literal", "1249.5"),
        ("x = 1_249.50", "literal", "1249.5"),
        ('"desk train 017"', "task_id", "desk train 017"),
        ('x = "desk" + "_train_" + "017"', "task_id", "desk_train_017"),
        ("memory.desk_train_017 = 1", "task_id", "desk_train_017"),
        ("pass  # as in desk-train-017", "task_id", "desk-train-017"),
        ('if "yusuf" in view.task.lower(): return Block("no")', "literal", "yusuf"),
        ('if view.task in ("candle",): return Block("no")', "literal", "candle"),
        ('return Block("the refund is a refund of 87.35")', "gold", "refund of 87 35"),
        ('return Block("take mug 3")', "literal", "mug 3"),
        ("order_w48213 = 1", "literal", "w48213"),
        (f'x = "{base64.b64encode(b"W48213 now").decode()}"', "literal", base64.b64encode(b"W48213 now").decode()),
        (f'x = "{b"desk-train-017".hex()}"', "task_id", b"desk-train-017".hex()),
        ("x = {48213007: 1, 57120931: 2, 90001227: 3, 11903772: 4}", "opaque", "48213007 57120931 90001227 11903772"),
        ("x = 4821377120", "opaque", "4821377120"),
    ],
)
def test_a_hard_coded_literal_in_code_is_found(body: str, kind: str, literal: str) -> None:
    """Ids, answers, names and numbers of one task are found in code however they are put together."""
    found = {(leak.kind, leak.literal) for leak in leaks_of("action.py", rule(body))}
    assert (kind, literal) in found


def test_a_hash_leads_back_to_its_task() -> None:
    """A table of hashes is refused, and a hash of a task's literal names the task."""
    known, unknown = hashlib.sha256(b"desk-train-018").hexdigest(), hashlib.sha256(b"something else").hexdigest()
    leaks = leaks_of("action.py", rule(f'x = {{"{known}", "{unknown}"}}'))
    assert {(leak.literal, leak.task_id) for leak in leaks if leak.kind == "opaque"} >= {
        (known, "desk-train-018"),
        (unknown, None),
    }


@pytest.mark.parametrize(
    ("file", "text", "kind"),
    [
        ("skills/cancel.md", "Cancel the order because the candle\narrived broken today.", "phrase"),
        ("contract.toml", 'text = "Orders of Yusuf are pending."', "literal"),
        ("contract.toml", 'text = "\\u0057\\u00348213 is pending"', "literal"),
        ("skills/desk-train-018.md", "Ask first.", "task_id"),
        ("skills/bremen.md", "Ship it to Bremen.", "literal"),
    ],
)
def test_copied_task_text_is_found_in_data_files(file: str, text: str, kind: str) -> None:
    """Phrases across line breaks, names, escaped strings and file names count as added text too."""
    assert kind in {leak.kind for leak in leaks_of(file, text)}


@pytest.mark.parametrize(
    ("file", "text"),
    [
        (
            "contract.toml",
            'text = "Only pending orders can be cancelled; refused in 12 tasks, 500 characters at most."',
        ),
        (
            "contract.toml",
            'id = "contract.cancel-pending-only"\ntool = "cancel_order"\ntext = "Ask the customer first."',
        ),
        (
            "skills/cancel.md",
            "1. Look the order up.\n2. Candle or mug: the item does not matter.\n3. Refund to the gift card.",
        ),
        (
            "action.py",
            rule('if view.proposed and view.proposed.tool == "cancel_order": return Block("The order is shipped.")'),
        ),
        ("action.py", rule('if "mug 1" in (view.admissible or ()): memory["seen"] = memory.get("seen", 0) + 1')),
        ("action.py", rule("if len(view.history) > 10 and view.steps_left < 45: return Block('Arvo says stop')")),
        ("action.py", rule("import re; x = re.sub(r'\\b(the|a)\\b', '', view.task.lower())[:100]")),
        ("trajectory.py", "# The customer may be wrong about the status; today is no reason.\n"),
    ],
)
def test_words_of_the_domain_raise_no_alarm(file: str, text: str) -> None:
    """Tool names, statuses, shared objects, plain prose and small or round numbers pass."""
    assert leaks_of(file, text) == ()


def test_what_was_there_before_is_not_reported_again() -> None:
    """Only added text is linted: an old leak in an edited file is not this patch's."""
    old = {**SEED, "action.py": rule('x = "W48213"').encode()}
    new = {**SEED, "action.py": b"# moved down\n" + rule('x = "W48213"\n    y = "W77120"').encode()}
    assert {leak.literal for leak in find_leaks(old, new, CORPUS)} == {"w77120"}


def test_each_finding_says_which_literal_which_task_and_where() -> None:
    """The message alone lets an author mend the leak."""
    (leak,) = leaks_of("action.py", rule('x = "W48213"'))
    assert str(leak) == "action.py:5: 'w48213' occurs in training task desk-train-017 only"


def test_code_that_nests_too_deeply_to_be_read_is_refused() -> None:
    """A chain of additions longer than the reader can follow cannot hide a literal."""
    chain = "+".join(['"a"'] * 3000)
    assert [leak.kind for leak in leaks_of("action.py", f"x = {chain}\n")] == ["opaque"]


def test_a_corpus_of_real_size_raises_no_false_alarm() -> None:
    """Sixty tasks with 50 kB of repetitive trace each find nothing in a harmless rule."""
    trace = "".join(f"you see a mug {n % 20} on shelf {n % 9}, order W{n % 500}\n" for n in range(1300))
    corpus = TaskCorpus(
        {f"t-{n}": f"task number {n} of many" for n in range(60)}, {f"t-{n}": (trace,) for n in range(60)}
    )
    assert find_leaks(SEED, {**SEED, "action.py": rule("x = 1").encode()}, corpus) == ()
