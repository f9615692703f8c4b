"""The tree of commands: what each is called and where it stands in the help."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

from evolve.cli.commands import (
    accept,
    bench,
    candidates,
    config,
    demo,
    doctor,
    env,
    evaluate,
    freeze,
    harness,
    init,
    patterns,
    plan,
    reject,
    report,
    review,
    run,
    runs,
    selftest,
    traces,
)

HELP = """Evolve the harness around a frozen model: roll out, find patterns in the failures, patch, gate, accept.

The model, the environment and its scoring never change; only the files in harness_artifacts/ do, by git commits
that carry their evidence. Each command takes --json. Configuration, strongest first: flags, --set, EVOLVE_*
variables, --config, evolve.toml."""
SETTINGS: dict[str, Any] = {"no_args_is_help": True, "add_completion": False, "rich_markup_mode": None}
VERBS: tuple[Callable[..., None], ...] = (
    demo.demo,
    init.init,
    doctor.doctor,
    plan.plan,
    run.run,
    review.review,
    accept.accept,
    reject.reject,
    freeze.freeze,
    evaluate.evaluate,
    report.report,
    selftest.selftest,
)
NOUNS = {
    "runs": runs.group,
    "candidates": candidates.group,
    "traces": traces.group,
    "patterns": patterns.group,
    "config": config.group,
    "harness": harness.group,
    "env": env.group,
    "bench": bench.group,
}


def command() -> Callable[..., Any]:
    """Return the whole command line as one callable."""
    app = typer.Typer(context_settings={"help_option_names": ["-h", "--help"]}, **SETTINGS)
    app.callback(help=HELP)(_top)
    for verb in VERBS:
        app.command(verb.__name__)(verb)
    for noun, group in NOUNS.items():
        app.add_typer(group, name=noun)
    return typer.main.get_command(app)


def _print_version(is_asked: bool) -> None:
    if is_asked:
        from evolve import __version__

        print(__version__)
        raise typer.Exit


def _top(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Take the options that stand before any command."""
