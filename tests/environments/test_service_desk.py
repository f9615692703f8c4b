"""The service desk keeps its policy, its seal and its promises about who can score."""

from __future__ import annotations

import subprocess
import sys
from copy import deepcopy
from pathlib import Path

import pytest

from evolve.environments.service_desk import baselines, create
from evolve.environments.service_desk.cases import Case, Gold
from evolve.environments.service_desk.content import Pool
from evolve.environments.service_desk.families import FAMILIES
from evolve.environments.service_desk.gold import gold_calls
from evolve.environments.service_desk.heldout_tickets import CANARY, HELDOUT, heldout_cases
from evolve.environments.service_desk.loop_tickets import GUARD, TRAIN, loop_cases
from evolve.environments.service_desk.policy import LIMITS, RULES
from evolve.environments.service_desk.scoring import Closing, says_enough, score
from evolve.environments.service_desk.session import DeskSession
from evolve.environments.service_desk.tools import TOOLS
from evolve.errors import ConfigError, SealError, UserError
from evolve.records import Look, Split

LOOK = Look(
    look_id="look-1",
    environment="service_desk",
    frozen_name="v1",
    harness="off",
    model="m",
    opened_at="2031-01-01T00:00:00Z",
    number=1,
)


TRAIN_CASES, GUARD_CASES, HELDOUT_CASES = loop_cases(Split.TRAIN), loop_cases(Split.GUARD), heldout_cases()
CASES = (*TRAIN_CASES, *GUARD_CASES, *HELDOUT_CASES)


GOLD = Gold((), "refused", (), code="already_shipped")
GIVEN = {("already_shipped", "7F3A"), ("not_owner", "9D04")}


@pytest.mark.parametrize(
    ("statement", "is_enough"),
    [
        ("Refused (already_shipped, ref 7F3A): an order with status shipped cannot be cancelled.", True),
        ("ref 7f3a: ALREADY_SHIPPED", True),
        ("already_shipped", False),
        ("ref 7F3A", False),
        ("already_shipped, ref 7F3B", False),
        ("already_shipped, ref 7F3A1", False),
        ("already_shipped, ref 9D04", False),
        ("already shipped, ref 7F3A", False),
        ("already_shipped or window_closed, ref 7F3A", False),
    ],
)
def test_a_statement_is_read_by_whole_tokens(statement: str, is_enough: bool) -> None:
    """Code and a reference that came with it must stand there as whole words, and no other reason code may."""
    assert says_enough(Closing("refused", statement, GIVEN), GOLD) is is_enough


def test_a_reference_counts_only_where_it_was_given() -> None:
    """Who was not refused cannot quote a refusal, even with the right digits."""
    assert not says_enough(Closing("refused", "already_shipped, ref 7F3A"), GOLD)


@pytest.mark.parametrize(
    ("statement", "is_enough"), [("Order O-0002.", True), ("order 0002", False), ("O-00021", False), ("o-0002", True)]
)
def test_an_id_is_named_whole(statement: str, is_enough: bool) -> None:
    """An id counts with its letter only."""
    assert says_enough(Closing("done", statement), Gold((), "done", ("O-0002",))) is is_enough


@pytest.mark.parametrize(
    ("statement", "is_enough"),
    [("paid $23.50.", True), ("paid 23.5", True), ("paid 123.50", False), ("paid 23", False), ("paid 23.505", False)],
)
def test_amounts_are_compared_by_value(statement: str, is_enough: bool) -> None:
    """An amount may be written with one decimal or a currency sign, but must be the amount."""
    assert says_enough(Closing("done", statement), Gold((), "done", ("23.50",))) is is_enough


def test_each_part_can_sink_the_score() -> None:
    """Database, statement and resolution are all needed, and a ticket left open scores 0."""
    good = "already_shipped, ref 7F3A"
    assert score(Closing("refused", good, GIVEN), True, GOLD).value == 1.0
    assert score(Closing("refused", good, GIVEN), False, GOLD).parts["database"] == 0.0
    assert score(Closing("done", good, GIVEN), True, GOLD).value == 0.0
    assert score(Closing("refused", "no", GIVEN), True, GOLD).value == 0.0
    assert not score(None, True, GOLD).success


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.task.task_id)
def test_gold_solves_every_ticket(case: Case) -> None:
    """Gold scores 1.0 in two to four calls; each is accepted but the one that shows what the policy forbids."""
    this = DeskSession(case.task.text, case.draft)
    answers = [this.step(call) for call in gold_calls(case)]
    refused = [answer.text for answer in answers if answer.error_kind is not None]
    code = case.draft.gold.code
    assert [text.startswith(f"Refused ({code}, ref ") for text in refused] == ([True] if code else [])
    assert bool(code) is (case.draft.gold.resolution == "refused")
    assert 2 <= len(answers) <= 4
    assert this.score().value == 1.0


@pytest.mark.parametrize("cases", [TRAIN_CASES, HELDOUT_CASES], ids=["train", "heldout"])
def test_each_family_that_names_an_id_has_it_both_exact_and_bare(cases: tuple[Case, ...]) -> None:
    """About a third of the tickets name the id as the tools want it; only three families name none."""
    named: dict[str, list[bool]] = {}
    for case in cases:
        for name in (*case.draft.desk.orders, *case.draft.desk.subscriptions):
            if name[2:] in case.task.text:
                named.setdefault(case.task.family, []).append(name in case.task.text)
    assert {f.__name__ for f in FAMILIES} - set(named) == {"change_address", "credit_cap", "refund_late"}
    assert all(set(exact) == {True, False} for exact in named.values())
    exact = [is_exact for family in named.values() for is_exact in family]
    assert 0.25 < sum(exact) / len(exact) < 0.42


@pytest.mark.parametrize("name", [name for name in baselines.agents() if name != "gold"])
def test_agents_that_look_at_nothing_score_nothing(name: str) -> None:
    """Silence, saying everything at once and guessing a reason each stay at or below 0.05 over all tickets."""
    assert baselines.mean_score(create({}), baselines.agents()[name], CASES) <= 0.05


def test_say_everything_says_what_the_ticket_says() -> None:
    """The blind closer is a fair one: its statement is accepted and holds the order's id."""
    case = next(case for case in TRAIN_CASES if "#" in case.task.text)
    (call,) = baselines.say_everything("refused", case)
    assert f"O-{case.task.text.split('#')[1][:4]}" in call.arguments["statement"]
    assert DeskSession(case.task.text, case.draft).step(call).done


def test_splits_are_large_and_balanced() -> None:
    """There are enough tickets of enough families, and any prefix has each family within one of the others."""
    sizes = {split: [case.task.family for case in CASES if case.task.split is split] for split in Split}
    assert {split.value: len(families) for split, families in sizes.items()} == {
        "train": 85,
        "guard": 34,
        "heldout": 68,
    }
    assert len(FAMILIES) >= 8
    for families in sizes.values():
        for end in range(1, len(families)):
            counts = [families[:end].count(family.__name__) for family in FAMILIES]
            assert max(counts) - min(counts) <= 1


def content(case: Case) -> set[str]:
    """What a case holds that no other split may: ids, names, emails, items, addresses, amounts."""
    rows = case.draft.desk
    items = [item for order in rows.orders.values() for item in order.items]
    cents = [item.price for item in items] + [o.total for o in rows.orders.values()]
    cents += [o.late_fee for o in rows.orders.values()] + [s.balance for s in rows.subscriptions.values()]
    words = {*rows.customers, *rows.orders, *rows.subscriptions, *rows.sizes, *(item.sku for item in items)}
    words |= {part for c in rows.customers.values() for part in (c.email, *c.name.split())}
    words |= {item.name for item in items} | {size.product for size in rows.sizes.values()}
    words |= {order.address for order in rows.orders.values()}
    return words | {f"{amount} cents" for amount in cents if amount} | {case.task.text}


def test_splits_share_no_content() -> None:
    """No id, name, product, address, amount or text of one split occurs in another."""
    by_split = {s: set().union(*(content(c) for c in CASES if c.task.split is s)) for s in Split}
    for one in Split:
        for other in Split:
            assert one is other or not by_split[one] & by_split[other]


def test_pools_share_no_words() -> None:
    """The lists that splits draw from are disjoint, used or not."""

    def words(pool: Pool) -> set[str]:
        return {pool.host, *pool.first_names, *pool.last_names, *pool.goods, *pool.clothes, *pool.streets, *pool.towns}

    assert not words(TRAIN) & words(GUARD)
    assert not words(TRAIN) & words(HELDOUT)
    assert not words(GUARD) & words(HELDOUT)


def test_ids_within_a_split_never_recur() -> None:
    """Each ticket has ids of its own, so nothing learned about one row helps with another."""
    ids = [name for case in CASES for name in (*case.draft.desk.customers, *case.draft.desk.orders)]
    assert len(ids) == len(set(ids))


def test_the_same_calls_give_the_same_answers() -> None:
    """Two environments and two trials answer alike, and one session does not change the next."""
    case = TRAIN_CASES[3]
    before = deepcopy(case.draft.desk)
    runs = []
    for trial in (0, 1):
        this = create({}).open(case.task, trial)
        runs.append([this.step(call).text for call in gold_calls(case)] + [this.score().model_dump_json()])
    assert runs[0] == runs[1]
    assert case.draft.desk == before


def test_heldout_is_sealed() -> None:
    """Held-out tasks are listed against a look for this environment only."""
    this = create({})
    with pytest.raises(SealError):
        this.tasks(Split.HELDOUT)  # type: ignore[arg-type]
    with pytest.raises(SealError):
        this.heldout_tasks(LOOK.model_copy(update={"environment": "household"}))
    tasks = this.heldout_tasks(LOOK)
    assert {task.split for task in tasks} == {Split.HELDOUT}
    assert this.open(tasks[0], 0).opening.user == tasks[0].text


def test_the_canary_stands_in_heldout_gold_only() -> None:
    """The canary marks each held-out gold and is in nothing that an agent sees."""
    for case in CASES:
        assert (case.draft.gold.mark == CANARY) is (case.task.split is Split.HELDOUT)
        assert CANARY not in case.task.model_dump_json()
        assert not any(CANARY in str(call) for call in gold_calls(case))
    assert create({}).card.canary == CANARY


def test_the_page_tells_the_whole_policy() -> None:
    """The page in docs lists each refusal with its kind, each tool, family and count as the code has them."""
    page = (Path(__file__).parents[2] / "docs/environments/service_desk.md").read_text()
    for rule in RULES:
        words = rule.template
        for name, limit in LIMITS.items():
            words = words.replace(f"{{{name}}}", str(limit))
        assert f"| {words} | `{rule.kind}` |" in page
    for tool in TOOLS:
        assert f"| `{tool.name}` |" in page
    for family, case in zip(FAMILIES, TRAIN_CASES, strict=False):
        row = f"{family.__doc__} | {case.draft.gold.resolution} | {len(gold_calls(case))} |"
        assert f"| `{family.__name__}` | {row}" in page
    assert f"| train | {len(TRAIN_CASES)} |" in page
    assert f"| guard | {len(GUARD_CASES)} |" in page
    assert f"| heldout | {len(HELDOUT_CASES)} |" in page


def test_only_own_tasks_open() -> None:
    """A task that was altered, or that the options leave out, is refused."""
    this = create({"train": 1})
    first, second = create({}).tasks(Split.TRAIN)[:2]
    assert this.open(first, 0).opening.user == first.text
    for task in (second, first.model_copy(update={"text": "other"})):
        with pytest.raises(UserError, match=task.task_id):
            this.open(task, 0)


def test_options_cut_to_a_prefix() -> None:
    """A limit keeps the first tasks of a list and leaves the card's digest alone."""
    full, cut = create({}), create({"train": 3, "guard": 2, "heldout": 1})
    assert cut.tasks(Split.TRAIN) == full.tasks(Split.TRAIN)[:3]
    assert cut.tasks(Split.GUARD) == full.tasks(Split.GUARD)[:2]
    assert cut.heldout_tasks(LOOK) == full.heldout_tasks(LOOK)[:1]
    assert cut.card.digest == full.card.digest
    assert cut.heldout_digest() != full.heldout_digest()


@pytest.mark.parametrize(
    ("options", "word"), [({"trian": 3}, "trian"), ({"train": "3"}, "train"), ({"guard": -1}, "guard")]
)
def test_wrong_options_are_named(options: dict[str, object], word: str) -> None:
    """An unknown option or a limit that is no count is a configuration error naming it."""
    with pytest.raises(ConfigError, match=word):
        create(options)


def test_digests_are_equal_in_another_process() -> None:
    """Card and held-out digests do not depend on the process."""
    code = (
        "from evolve.environments.service_desk import create\ne = create({}); print(e.card.digest, e.heldout_digest())"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    here = create({})
    assert out.split() == [here.card.digest, here.heldout_digest()]


def test_the_agent_reads_little() -> None:
    """Tickets and answers stay short: a small model reads each of them in under a second."""
    for case in CASES:
        this = DeskSession(case.task.text, case.draft)
        assert len(case.task.text) <= 300
        assert all(len(this.step(call).text) <= 220 for call in gold_calls(case))
