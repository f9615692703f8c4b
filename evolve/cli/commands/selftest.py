"""`evolve selftest`: the gate on known answers."""

from __future__ import annotations

from typing import Annotated

import typer

from evolve.cli.options import AsJson


def selftest(
    tasks: Annotated[int, typer.Option(min=1, help="Training tasks.")] = 40,
    trials: Annotated[int, typer.Option(min=1, max=64, help="Trials per task and arm of the common rules.")] = 2,
    candidates: Annotated[int, typer.Option(min=1, help="Worthless candidates in a row.")] = 10,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all draws.")] = 1,
    runs: Annotated[int, typer.Option(min=100, help="Simulated runs; more is finer and slower.")] = 4000,
    as_json: AsJson = False,
) -> None:
    """Measure the gate on simulated runs whose truth is known: false accepts, power and cost, beside common rules.

    Exit code 1 where a claim about the gate does not hold.
    """
    from evolve.cli.codes import OUR_BUG
    from evolve.cli.output import show
    from evolve.cli.selftest_text import selftest_text
    from evolve.gate.selftest import selftest as measure

    report = measure(tasks, trials, candidates, seed, runs=runs)
    show(report, selftest_text(report), as_json=as_json)
    if not all(scenario["is_held"] for scenario in report["scenarios"].values()):
        raise typer.Exit(OUR_BUG)
