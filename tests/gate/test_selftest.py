"""The self-test: the shape of its report, and calibration at a small scale with three sigma of tolerance."""

import math
from typing import Any

import numpy as np
import pytest

from evolve.gate.scenarios import SCENARIOS, scenarios
from evolve.gate.selftest import selftest
from evolve.gate.sequential import SequentialPairedTest
from evolve.gate.simulate import pass_rates, play, tape

RUNS = 500
KEYS = {
    "false_accept_per_candidate",
    "false_accept_in_10",
    "power_5",
    "power_10",
    "power_15",
    "trials_per_task_null",
    "trials_per_task_good",
}


@pytest.fixture(scope="module")
def report() -> dict[str, Any]:
    return selftest(seed=20, runs=RUNS, full=False)


def sigma(share: float) -> float:
    return 3 * math.sqrt(share * (1 - share) / RUNS)


def test_report_has_its_documented_shape(report: dict[str, Any]) -> None:
    """Each rule, ours under both policies first, reports the same seven figures."""
    assert set(report) == {"schema_version", "setup", "rules", "wall_s"}
    names = [
        "standard",
        "strict",
        "mean > incumbent's",
        "mean >= incumbent's",
        "mean + 1 SE",
        "mean + 2 SE",
        "sign-flip p < .05",
    ]
    assert list(report["rules"]) == names
    assert all(set(figures) == KEYS for figures in report["rules"].values())


@pytest.mark.parametrize(("policy", "limit"), [("standard", 0.05), ("strict", 0.02)])
def test_ten_worthless_candidates_stay_within_the_budget(report: dict[str, Any], policy: str, limit: float) -> None:
    """At least one false accept in ten is no more frequent than promised."""
    assert report["rules"][policy]["false_accept_in_10"] <= limit + sigma(limit)


@pytest.mark.parametrize(("key", "least"), [("power_5", 0.38), ("power_10", 0.90), ("power_15", 0.99)])
def test_true_gains_are_found(report: dict[str, Any], key: str, least: float) -> None:
    """The standard policy has the promised power."""
    assert report["rules"]["standard"][key] >= least - sigma(least)


def test_trials_are_spent_where_they_decide(report: dict[str, Any]) -> None:
    """Worthless candidates take at most 3.5 trials per task and arm, good ones 7.5 (plus sampling error)."""
    assert report["rules"]["standard"]["trials_per_task_null"] <= 3.5 + 0.3
    assert report["rules"]["standard"]["trials_per_task_good"] <= 7.5 + 0.5


def test_common_rules_show_their_documented_faults(report: dict[str, Any]) -> None:
    """The simulator reproduces published figures: naive accepts a null 45%, one standard error 17%, two 2%."""
    rules = report["rules"]
    for name, share in (
        ("mean > incumbent's", 0.45),
        ("mean + 1 SE", 0.17),
        ("mean + 2 SE", 0.02),
        ("sign-flip p < .05", 0.03),
    ):
        assert rules[name]["false_accept_per_candidate"] == pytest.approx(share, abs=0.02)
    assert rules["mean > incumbent's"]["false_accept_in_10"] > 0.8


def test_no_common_rule_has_less_error_and_more_power(report: dict[str, Any]) -> None:
    """Whatever has a lower run-wide error than ours has far less power."""
    ours = report["rules"]["standard"]
    for name, rule in report["rules"].items():
        if name not in ("standard", "strict"):
            assert rule["false_accept_in_10"] > ours["false_accept_in_10"] or rule["power_10"] < ours["power_10"]


@pytest.mark.parametrize("is_copy", [True, False])
def test_two_hundred_controls_stay_within_the_binomial_bound(is_copy: bool) -> None:
    """Of 200 byte-identical or 200 independent worthless candidates at 5% no more are accepted than chance allows."""
    rng = np.random.default_rng(12)
    rates = pass_rates(rng, 200, 40)
    incumbent = tape(rng, rates, 24)
    candidate = incumbent if is_copy else tape(rng, rates, 24)
    accepted = int(play(SequentialPairedTest(), incumbent, candidate, 0.05).accepted.sum())
    assert accepted <= (0 if is_copy else 200 * 0.05 + 3 * math.sqrt(200 * 0.05 * 0.95))


def test_same_seed_gives_the_same_report() -> None:
    """The report is a function of its arguments, but for the time it took."""
    one, other = (selftest(tasks=24, candidates=2, seed=3, runs=40, full=False) for _ in range(2))
    assert {**one, "wall_s": 0} == {**other, "wall_s": 0}
    assert "false_accept_in_2" in one["rules"]["standard"]


def test_whole_gate_keeps_its_claims() -> None:
    """On a few runs each scenario's claim holds: exploits, regressions, voids, drift and honest gains."""
    played = scenarios(tasks=40, seed=2, runs=60)
    assert list(played) == list(SCENARIOS)
    assert [name for name, shares in played.items() if not shares["is_held"]] == []
