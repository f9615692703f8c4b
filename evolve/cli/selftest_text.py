"""The report of the gate's self-test as text."""

from __future__ import annotations

from evolve.cli.output import table
from evolve.figures import percent
from evolve.records import Json


def selftest_text(report: Json) -> str:
    """Return false accepts, power and cost of each rule, and whether each scenario held."""
    setup = report["setup"]
    many = f"false_accept_in_{setup['candidates']}"
    rows = [
        (
            name,
            percent(rule["false_accept_per_candidate"]),
            percent(rule[many]),
            *(percent(rule[f"power_{gain}"]) for gain in (5, 10, 15)),
            f"{rule['trials_per_task_null']:.1f}",
            f"{rule['trials_per_task_good']:.1f}",
        )
        for name, rule in report["rules"].items()
    ]
    head = (
        "RULE",
        "FALSE ACCEPT",
        f"ANY OF {setup['candidates']}",
        "POWER +5",
        "+10",
        "+15",
        "TRIALS IF WORTHLESS",
        "IF GOOD",
    )
    played = [(name, "held" if found["is_held"] else "FAILED", found["claim"]) for name, found in _scenarios(report)]
    scenarios = f"\n\n{table(('SCENARIO', 'CLAIM', 'IS THAT'), played)}" if played else ""
    return (
        f"{setup['tasks']} tasks, {setup['runs']} simulated runs, seed {setup['seed']}, {report['wall_s']} s\n\n"
        f"{table(head, rows)}{scenarios}"
    )


def _scenarios(report: Json) -> list[tuple[str, Json]]:
    return list(report.get("scenarios", {}).items())
