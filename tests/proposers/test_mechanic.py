"""The mechanic: from hand-made failures to harness files whose rules do what they say."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import pytest
from handmade import DESK, ENVIRONMENT, HOUSE, SHOP, TEXT, act, episode, run_rule, step, tool, view

from evolve import rules
from evolve.classify.patterns import find_patterns
from evolve.errors import ProposerError
from evolve.harness.artifact import read_folder, read_harness
from evolve.harness.lint_code import lint_rules
from evolve.proposers.mechanic import Mechanic
from evolve.proposers.mechanic.recipes import RECIPES
from evolve.protocols import Assignment, Proposed
from evolve.records import Episode, Layer, Pattern, Step, Tool

SEED = f'schema_version = 1\nenvironment = "{ENVIRONMENT}"\n'
ACTIONS = ("open fridge 1", "go to drawer 1", "take mug 1 from table 1", "look")
ORDER = {"order_id": "O-7"}
CANCEL = {**ORDER, "reason": "changed_mind"}
CLOSE = {"resolution": "done", "statement": "It is done."}
REFUSED = step("cancel_order", CANCEL, answer="Only pending orders can be cancelled.", error="rejected")


def failures(*steps: Step, tools: tuple[Tool, ...] = DESK, **more: object) -> tuple[list[Episode], tuple[Tool, ...]]:
    """Return two failed episodes of different tasks with the same steps."""
    more.setdefault("stop", "step_limit")
    return [episode(*steps, task=task, **more) for task in ("t1", "t2")], tools  # type: ignore[arg-type]


def patterns_of(
    failed: list[Episode], tools: tuple[Tool, ...], successes: tuple[Episode, ...] = ()
) -> tuple[Pattern, ...]:
    return find_patterns(failed, successes, tools, environment=ENVIRONMENT)


class Bench:
    """A workspace with an evidence folder, as the loop prepares them."""

    def __init__(self, root: Path) -> None:
        self.workspace, self.evidence = root / "workspace", root / "evidence"
        self.workspace.mkdir()
        self.evidence.mkdir()
        (self.workspace / "harness.toml").write_text(SEED)
        self.history: list[dict[str, object]] = []

    def propose(self, patterns: tuple[Pattern, ...]) -> Proposed:
        """Ask once; what is proposed counts as rejected from then on."""
        (self.evidence / "patterns.json").write_text(json.dumps([p.model_dump(mode="json") for p in patterns]))
        (self.evidence / "history.json").write_text(json.dumps(self.history))
        assignment = Assignment(ENVIRONMENT, 1, self.workspace, self.evidence, timeout_s=10)
        proposed = asyncio.run(Mechanic().propose(assignment))
        if proposed.proposal is not None:
            proposal = proposed.proposal.model_dump(mode="json")
            self.history.append({"candidate_id": "c", "proposal": proposal, "decision": "reject", "reasons": []})
        return proposed

    def propose_all(self, patterns: tuple[Pattern, ...]) -> list[str]:
        """Ask until nothing is left; return the units proposed, in order."""
        units: list[str] = []
        while (proposed := self.propose(patterns)).proposal is not None:
            units += units_of(proposed)
        return units

    def text(self, name: str) -> str:
        return (self.workspace / name).read_text()


def units_of(proposed: Proposed) -> list[str]:
    assert proposed.proposal is not None
    named = re.match(r"(?:\[[\w.-]+\] )+", proposed.proposal.hypothesis)
    assert named is not None
    return re.findall(r"[\w.-]+", named.group())


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


SPEAKS = [
    ("action.rescue-text-call", failures(step(text="get_order('O-7')", error="malformed_call"))),
    ("action.repair-arguments", failures(step("get_order", "{'order_id': 'O-7'}", error="malformed_call"))),
    ("action.near-names", failures(step("getOrder", ORDER, error="unknown_tool"))),
    ("action.near-names", failures(step("get_order", {"order": "O-7"}, error="invalid_args"))),
    ("action.near-values", failures(act("open the fridge", error="no_effect"), tools=HOUSE, admissible=ACTIONS)),
    ("action.near-values", failures(step("cancel_order", {**ORDER, "reason": "Changed mind"}, error="invalid_args"))),
    ("action.complete-id", failures(step("find_order", {"order_id": "#1512"}, error="invalid_args"), tools=SHOP)),
    ("trajectory.offer-actions", failures(act("eat mug", error="no_effect"), tools=HOUSE, admissible=ACTIONS)),
    ("contract.lift-refusal-", failures(REFUSED)),
    ("contract.require-argument-", failures(step("cancel_order", ORDER, error="invalid_args"))),
    ("contract.list-values-", failures(step("cancel_order", {**ORDER, "reason": "bored"}, error="invalid_args"))),
    ("contract.name-tools", failures(step("refund", {}, error="unknown_tool"))),
    ("contract.call-every-turn", failures(step(text="Hm."), step(text="Well."))),
    ("contract.act-before-closing-", failures(step("close_ticket", CLOSE, done=True), stop="finished")),
    ("action.confirm-close-", failures(step("close_ticket", CLOSE, done=True), stop="finished")),
    ("trajectory.warn-repeats", failures(*[act("look")] * 3, tools=HOUSE)),
    ("action.block-repeats", failures(*[act("look")] * 3, tools=HOUSE)),
    ("trajectory.list-untried", failures(*[act("look")] * 3, tools=HOUSE, admissible=ACTIONS)),
    ("trajectory.low-budget", failures(act("look"), tools=HOUSE)),
]


@pytest.mark.parametrize(("unit", "seen"), SPEAKS, ids=[unit for unit, _ in SPEAKS])
def test_signature_becomes_its_unit(unit: str, seen: tuple[list[Episode], tuple[Tool, ...]], bench: Bench) -> None:
    """The unit of the recipe is among what is proposed, and the harness with all proposed units reads and lints."""
    units = bench.propose_all(patterns_of(*seen))
    assert any(proposed.startswith(unit) for proposed in units)
    harness = read_harness(read_folder(bench.workspace))
    assert [finding for name, source in harness.rule_sources.items() for finding in lint_rules(name, source)] == []


def test_every_recipe_has_a_case() -> None:
    """No recipe is without a failure that calls for it."""
    spoken = {unit.partition(".")[2].rstrip("-") for unit, _ in SPEAKS} | {"common-procedure", "close-at-end"}
    assert spoken == {recipe.name for recipe in RECIPES}


def test_a_proposal_has_one_unit_one_file_and_foresight(bench: Bench) -> None:
    """One hypothesis: layer, pattern, the pattern's tasks as fixed, matching successes as endangered."""
    failed, tools = failures(*[act("look")] * 3, tools=HOUSE)
    patterns = patterns_of(failed, tools, (episode(*[act("look")] * 3, task="s1", success=True),))
    before = read_folder(bench.workspace)
    proposal = bench.propose(patterns).proposal
    assert proposal is not None
    assert (proposal.layer, proposal.predicts_fixed) == (Layer.TRAJECTORY, ("t1", "t2"))
    assert proposal.pattern_id in {p.pattern_id for p in patterns}
    assert set(read_folder(bench.workspace)) - set(before) == {"trajectory.py"}


def test_nothing_decided_is_proposed_again(bench: Bench) -> None:
    """Asked with its own history, the mechanic never repeats a unit, and in the end has nothing to propose."""
    seen, tools = failures(REFUSED, *[step("get_order", ORDER)] * 3, step(text="Hm."), step(text="Well."))
    units = bench.propose_all(patterns_of(seen, tools))
    assert len(units) >= 5
    assert len(units) == len(set(units))
    assert bench.propose(patterns_of(seen, tools)).proposal is None


def test_a_unit_of_the_incumbent_is_not_proposed(bench: Bench) -> None:
    """What the harness already has is left alone, also without a history."""
    patterns = patterns_of(*failures(*[act("look")] * 3, tools=HOUSE))
    first = units_of(bench.propose(patterns))
    bench.history.clear()
    assert units_of(bench.propose(patterns)) != first


def test_refusals_are_told_together_and_after_a_rejection_one_by_one(bench: Bench) -> None:
    """One note is too small to measure: several go into one candidate; a rejected bundle is taken apart."""
    no = "Refunds end after the return window."
    other = step("close_ticket", CLOSE, answer=no, error="rejected")
    patterns = patterns_of(*failures(REFUSED, other, step("get_order", ORDER)))
    seed = read_folder(bench.workspace)
    bundle = bench.propose(patterns)
    assert len(units_of(bundle)) == 2
    assert bench.text("contract.toml").count("[[tool]]") == 2
    singles = []
    for _ in range(2):
        for name in set(read_folder(bench.workspace)) - set(seed):
            (bench.workspace / name).unlink()
        singles += units_of(bench.propose(patterns))
    assert sorted(singles) == sorted(units_of(bundle))


def test_a_refusal_by_several_tools_is_told_in_the_system_prompt(bench: Bench) -> None:
    """A rule that is not one tool's own is one pattern and names the tools it was met at."""
    words = "Identify the sender before any change."
    first = step("cancel_order", CANCEL, answer=words, error="rejected")
    second = step("get_order", ORDER, answer=words, error="rejected")
    bench.propose_all(patterns_of(*failures(first, second)))
    (note,) = (n for n in read_harness(read_folder(bench.workspace)).contract.system if "lift-refusal" in n.id)
    assert note.text.startswith(f'Known refusal of cancel_order, get_order: "{words}"')


def test_what_successes_do_too_is_not_discouraged(bench: Bench) -> None:
    """Where as many successes close without a change, no note and no block speaks against it."""
    failed, tools = failures(step("close_ticket", CLOSE, done=True), stop="finished")
    good = tuple(episode(step("close_ticket", CLOSE, done=True), task=t, success=True) for t in ("s1", "s2"))
    assert not [unit for unit in bench.propose_all(patterns_of(failed, tools, good)) if "clos" in unit]


def test_actions_are_listed_only_where_they_are_published(bench: Bench) -> None:
    """Without published actions there is nothing to list, and no such rule is proposed."""
    units = bench.propose_all(patterns_of(*failures(*[step("get_order", ORDER)] * 3)))
    assert "trajectory.warn-repeats" in units
    assert "trajectory.list-untried" not in units


def test_equal_evidence_gives_equal_files(tmp_path: Path) -> None:
    """The mechanic is deterministic, byte for byte."""
    patterns = patterns_of(*failures(REFUSED, *[step("get_order", ORDER)] * 3))
    made = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        bench = Bench(tmp_path / name)
        bench.propose_all(patterns)
        made.append(read_folder(bench.workspace))
    assert made[0] == made[1]


def test_no_id_of_an_episode_reaches_the_harness(bench: Bench) -> None:
    """Refusals are told without the ids of the tasks they come from."""
    failed = [
        episode(
            step("cancel_order", {**CANCEL, "order_id": o}, answer=f"Order {o} is shipped already.", error="rejected"),
            task=task,
        )
        for task, o in (("t1", "O-7714"), ("t2", "O-8825"))
    ]
    bench.propose_all(patterns_of(failed, DESK))
    text = b"".join(read_folder(bench.workspace).values())
    assert b"Order <order_id> is shipped already." in text
    assert not re.search(rb"O-\d{4}|\bt[12]\b", text)


def test_a_common_procedure_becomes_a_skill(bench: Bench) -> None:
    """The steps that successes share are written down for the family's tasks."""

    def success(task: str, thing: str) -> Episode:
        steps = (act(f"take {thing} 1"), act(f"heat {thing} 1 with microwave 1"), act(f"put {thing} 1 in shelf 1"))
        return episode(*steps, task=task, family="heat_then_place", success=True, user=f"Put a hot {thing} on a shelf.")

    failed, tools = failures(act("look"), tools=HOUSE, family="heat_then_place")
    bench.propose_all(patterns_of(failed, tools, (success("s1", "mug"), success("s2", "egg"))))
    (skill,) = read_harness(read_folder(bench.workspace)).skills
    assert "2. heat … with microwave" in skill.body
    assert skill.head.when == "put hot shelf"


def test_failures_that_never_close_get_told_to(bench: Bench) -> None:
    """Both the contract and the budget warning name the tool that ends successes."""
    done = episode(step("close_ticket", CLOSE, done=True), task="s1", success=True)
    failed, tools = failures(step("get_order", ORDER))
    units = bench.propose_all(patterns_of(failed, tools, (done,)))
    assert "contract.close-at-end" in units
    assert "Always end with `close_ticket`" in bench.text("contract.toml")
    late = run_rule(bench.text("trajectory.py"), "trajectory.low-budget", view(DESK, [REFUSED], steps_left=2))
    assert isinstance(late, rules.Note)
    assert "close_ticket" in late.text


def test_what_stands_in_the_files_is_kept(bench: Bench) -> None:
    """Notes, rules, comments and imports that were there are still there after the edit."""
    old = '"""Mine."""\n\nimport math\n\nfrom evolve.rules import PASS, action_rule\n\n\n# Kept on purpose.\n'
    old += '@action_rule(id="action.mine", strength="note", evidence="e")\ndef mine(view, memory):\n    return PASS\n'
    (bench.workspace / "action.py").write_text(old)
    note = '# Mine.\n[[system]]\nid = "contract.mine"\ntext = "Be kind."\nevidence = "e"\n'
    (bench.workspace / "contract.toml").write_text(note)
    bench.propose_all(patterns_of(*failures(REFUSED, step("getOrder", ORDER, error="unknown_tool"))))
    assert bench.text("contract.toml").startswith(note)
    action = bench.text("action.py")
    assert action.startswith('"""Mine."""\n\nimport difflib\nimport math\nimport re\n\nfrom evolve.rules import PASS, ')
    assert '# Kept on purpose.\n@action_rule(id="action.mine"' in action
    assert action.count("from evolve.rules import") == 1
    assert run_rule(action, "action.mine", view(DESK)) is rules.PASS


def test_rules_share_what_they_carry(bench: Bench) -> None:
    """A function that two rules need stands in the file once."""
    steps = (act("look"), act("look"), act("look"), act("open the fridge", error="no_effect"))
    bench.propose_all(patterns_of(*failures(*steps, tools=HOUSE, admissible=ACTIONS)))
    action = bench.text("action.py")
    assert "action.near-values" in action
    assert "action.block-repeats" in action
    assert action.count("def acting_argument(") == 1


@pytest.mark.parametrize(
    ("name", "content"), [("patterns.json", "{"), ("patterns.json", '[{"a": 1}]'), ("patterns.json", "{}")]
)
def test_broken_evidence_is_an_error_that_names_the_file(name: str, content: str, bench: Bench) -> None:
    """A damaged evidence folder stops the proposer instead of giving a patch about nothing."""
    (bench.evidence / name).write_text(content)
    assignment = Assignment(ENVIRONMENT, 1, bench.workspace, bench.evidence, timeout_s=10)
    with pytest.raises(ProposerError, match=name):
        asyncio.run(Mechanic().propose(assignment))


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Rule files with every rule that the mechanic knows."""
    bench = Bench(tmp_path_factory.mktemp("all"))
    for _, seen in SPEAKS:
        bench.propose_all(patterns_of(*seen))
    return {name: bench.text(name) for name in ("action.py", "trajectory.py")}


FIND = tool("find", first=TEXT, city=TEXT)
LIST = tool("list_items")
SEEN = [act("look", "A room."), act("look", "A room.")]


def test_all_rules_together_pass_the_lint(sources: dict[str, str]) -> None:
    """A harness that took every recipe stays within the size and the constructs that rule files are allowed."""
    assert [finding for name, source in sources.items() for finding in lint_rules(name, source)] == []


TURNS = [
    ("rescue-text-call", view(DESK, now=step(text="get_order('O-7')")), rules.Rewrite("get_order", ORDER)),
    ("rescue-text-call", view(DESK, now=step(text="get_order('O-7') get_order('O-8')")), rules.PASS),
    ("rescue-text-call", view(DESK, now=step(text="Which order?")), rules.PASS),
    ("rescue-text-call", view(DESK, now=step("get_order", ORDER, text="get_order('O-8')")), rules.PASS),
    (
        "rescue-text-call",
        view(HOUSE, now=step(text="Action: look"), admissible=ACTIONS),
        rules.Rewrite("take_action", {"action": "look"}),
    ),
    ("rescue-text-call", view(HOUSE, now=step(text="look\nopen fridge 1"), admissible=ACTIONS), rules.PASS),
    ("repair-arguments", view(DESK, now=step("get_order", "{'order_id': 'O-7'}")), rules.Rewrite("get_order", ORDER)),
    ("repair-arguments", view(DESK, now=step("get_order", "the order O-7")), rules.PASS),
    ("repair-arguments", view(DESK, now=step("get_order", ORDER)), rules.PASS),
    ("near-names", view(DESK, now=step("getOrder", ORDER)), rules.Rewrite("get_order", ORDER)),
    ("near-names", view(DESK, now=step("get_order", {"id": "O-7"})), rules.Rewrite("get_order", ORDER)),
    ("near-names", view(DESK, now=step("refund", ORDER)), rules.PASS),
    ("near-names", view(DESK, now=step("get_order", ORDER)), rules.PASS),
    ("near-names", view((FIND,), now=step("find", {"a": "x", "b": "y"})), rules.PASS),
    ("near-names", view((LIST,), now=step("list_items", {"all": True})), rules.PASS),
    (
        "near-values",
        view(HOUSE, now=act("Open the fridge."), admissible=ACTIONS),
        rules.Rewrite("take_action", {"action": "open fridge 1"}),
    ),
    ("near-values", view(HOUSE, now=act("open fridge"), admissible=("open fridge 1", "open fridge 2")), rules.PASS),
    ("near-values", view(HOUSE, now=act("look"), admissible=ACTIONS), rules.PASS),
    ("near-values", view(HOUSE, now=act("fly away")), rules.PASS),
    (
        "near-values",
        view(DESK, now=step("cancel_order", {**ORDER, "reason": "Changed Mind"})),
        rules.Rewrite("cancel_order", CANCEL),
    ),
    ("near-values", view(DESK, now=step("cancel_order", CANCEL)), rules.PASS),
    (
        "complete-id",
        view(SHOP, now=step("find_order", {"order_id": "order 1512", "note": "1512"})),
        rules.Rewrite("find_order", {"order_id": "O-1512", "note": "1512"}),
    ),
    ("complete-id", view(SHOP, now=step("find_order", {"order_id": "1512 or 1519"})), rules.PASS),
    ("complete-id", view(SHOP, now=step("find_order", {"order_id": "O-1512"})), rules.PASS),
    ("complete-id", view(SHOP, now=step("find_order", {"id": "1512"})), rules.PASS),
    ("complete-id", view(DESK, now=step("get_order", {"order_id": "1512"})), rules.PASS),
    ("complete-id", view(SHOP, now=step(text="Hm.")), rules.PASS),
    (
        "block-repeats",
        view(HOUSE, SEEN, now=act("look"), admissible=ACTIONS),
        rules.Block(
            "Not done: look got the same answer 2 times and nothing is new since. "
            "Not tried yet: go to drawer 1; take mug 1 from table 1; open fridge 1."
        ),
    ),
    ("block-repeats", view(HOUSE, [*SEEN, act("open", "New.")], now=act("look"), admissible=ACTIONS), rules.PASS),
    ("block-repeats", view(HOUSE, SEEN, now=act("open fridge 1"), admissible=ACTIONS), rules.PASS),
    ("block-repeats", view(HOUSE, SEEN, now=step(text="Hm.")), rules.PASS),
]


@pytest.mark.parametrize(("name", "seen", "outcome"), TURNS)
def test_action_rule_repairs_what_is_clear_and_passes_the_rest(
    name: str, seen: rules.View, outcome: rules.Outcome, sources: dict[str, str]
) -> None:
    """Each action rule changes the failing turn as intended and passes good and ambiguous ones."""
    assert run_rule(sources["action.py"], f"action.{name}", seen) == outcome


def test_closing_is_questioned_once_and_only_before_any_change(sources: dict[str, str]) -> None:
    """The closing call is held back one time; after a change, or when made again, it goes through."""
    (unit,) = re.findall(r'id="(action\.confirm-close-\w+)"', sources["action.py"])
    closing, memory = step("close_ticket", CLOSE), {}
    first = run_rule(sources["action.py"], unit, view(DESK, [step("get_order", ORDER)], now=closing), memory)
    again = run_rule(sources["action.py"], unit, view(DESK, [step("get_order", ORDER)], now=closing), memory)
    changed = run_rule(sources["action.py"], unit, view(DESK, [step("cancel_order", CANCEL)], now=closing))
    assert isinstance(first, rules.Block)
    assert (again, changed) == (rules.PASS, rules.PASS)


ANSWERS = [
    (
        "warn-repeats",
        view(HOUSE, SEEN, admissible=ACTIONS),
        "You are repeating yourself. Tried without a new result: look. "
        "Not tried yet: go to drawer 1; take mug 1 from table 1; open fridge 1.",
    ),
    (
        "warn-repeats",
        view(HOUSE, [act("a", "1"), act("b", "2"), act("a", "3"), act("b", "4")]),
        "You are repeating yourself. Do something that you have not tried.",
    ),
    ("warn-repeats", view(HOUSE, [act("look", "1"), act("look", "2")]), None),
    ("warn-repeats", view(HOUSE), None),
    ("list-untried", view(HOUSE, [act("look")], admissible=("look", "open fridge 1")), "Not tried yet: open fridge 1."),
    ("list-untried", view(DESK, [step("get_order", ORDER)]), None),
    (
        "offer-actions",
        view(HOUSE, [act("take the cup from table 1", error="no_effect")], admissible=ACTIONS[1:]),
        "This is not possible now. Possible are: take mug 1 from table 1; go to drawer 1; look.",
    ),
    ("offer-actions", view(HOUSE, [act("look")], admissible=ACTIONS), None),
    ("offer-actions", view(HOUSE, [act("look", error="no_effect")], admissible=ACTIONS), None),
    ("offer-actions", view(DESK, [REFUSED]), None),
    ("low-budget", view(HOUSE, [act("look")], steps_left=9), None),
]


@pytest.mark.parametrize(("name", "seen", "note"), ANSWERS)
def test_trajectory_rule_speaks_in_trouble_and_is_silent_otherwise(
    name: str, seen: rules.View, note: str | None, sources: dict[str, str]
) -> None:
    """Each trajectory rule notes what it should after the failing step, and nothing after a good one."""
    outcome = run_rule(sources["trajectory.py"], f"trajectory.{name}", seen)
    assert outcome == (rules.PASS if note is None else rules.Note(note))


def test_lists_of_actions_are_capped(sources: dict[str, str]) -> None:
    """However many actions are published, a note names at most three."""
    many = tuple(f"open box {n}" for n in range(40))
    note = run_rule(sources["trajectory.py"], "trajectory.list-untried", view(HOUSE, [act("look")], admissible=many))
    assert isinstance(note, rules.Note)
    assert note.text.count("open box") == 3
