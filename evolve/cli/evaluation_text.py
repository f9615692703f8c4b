"""A held-out evaluation and the looks before it, as a document and as text for people."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from evolve.cli.live import live_progress
from evolve.cli.output import say, show, table
from evolve.cli.place import Place, reading, wait_for
from evolve.doctor import require_ready, unknown_units
from evolve.environments.installed import check_names, make_environment
from evolve.evaluate import evaluate as look_at
from evolve.figures import count, grouped, interval, moment, money, percent, points
from evolve.freeze import frozen_harness
from evolve.harness.artifact import read_harness
from evolve.records import ArmResult, Evaluation, FrozenHarness, Json
from evolve.repository import harness_folder, open_repository
from evolve.seal import require_evaluable

if TYPE_CHECKING:
    from evolve.store.ledger import Ledger


def evaluate_once(place: Place, name: str, *, as_json: bool) -> None:
    """Take one look at the held-out tasks and show its result."""
    with _opened(place, name) as (frozen, ledger):
        looks = _looks(ledger, place.config.environment)
    require_ready(place.config, place.environ)
    for warning in _warnings(place, frozen):
        say(f"warning: {warning}")
    if looks:
        say(looks_text(looks))
    with ExitStack() as screen:
        progress = screen.enter_context(live_progress())

        def tell(result: Evaluation) -> None:
            screen.close()
            earlier = [look for look in looks if look["look_id"] != result.look.look_id]
            document = {**result.model_dump(mode="json"), "earlier_looks": earlier}
            show(document, evaluation_text(result, earlier), as_json=as_json)

        wait_for(look_at(place.workspace, place.config, name=name, environ=place.environ, progress=progress, tell=tell))


def would_evaluate(place: Place, name: str) -> Json:
    """Return the looks so far; it refuses as an evaluation does, before anything is asked or written.

    Raises:
        UserError, SealError: no look would be taken.
    """
    environment = place.config.environment
    options = place.config.environments.get(environment, {})
    with _opened(place, name) as (frozen, ledger):
        require_ready(place.config, place.environ)
        if ledger is not None:
            require_evaluable(ledger, make_environment(environment, options), options, frozen)
        looks = _looks(ledger, environment)
    return {"environment": environment, "name": name, "looks": looks, "warnings": _warnings(place, frozen)}


def would_text(would: Json) -> str:
    """Say what an evaluation would do, and what it would begin in spite of."""
    return "\n".join(
        [
            f"would take a look at the held-out tasks of {would['environment']}, with {would['name']} and without a "
            "harness;",
            looks_text(would["looks"]),
            *(f"warning: {warning}" for warning in would["warnings"]),
        ]
    )


@contextmanager
def _opened(place: Place, name: str) -> Iterator[tuple[FrozenHarness, Ledger | None]]:
    """Give what is frozen under a name, and the ledger for reading.

    Raises:
        UserError: there is no such environment, or nothing of it is frozen under that name.
    """
    environment = place.config.environment
    check_names([environment])
    with open_repository(place.workspace.root) as repository:
        frozen = frozen_harness(repository, environment=environment, name=name)
    with reading(place) as ledger:
        yield frozen, ledger


def _looks(ledger: Ledger | None, environment: str) -> list[Json]:
    """Return the looks made so far at an environment's held-out tasks, oldest first."""
    entries = ledger.looks(environment) if ledger else []
    return [{**entry.look.model_dump(mode="json"), "is_complete": entry.result is not None} for entry in entries]


def _warnings(place: Place, frozen: FrozenHarness) -> tuple[str, ...]:
    """Return what a look begins in spite of: units switched off that the frozen harness does not have."""
    if not place.config.harness.off:
        return ()
    with open_repository(place.workspace.root) as repository:
        harness = read_harness(repository.read_files(frozen.commit, harness_folder(frozen.environment)))
    return unknown_units(place.config, harness, frozen.name)


def looks_text(looks: list[Json]) -> str:
    """Say which looks were made."""
    if not looks:
        return "the held-out tasks of this environment have not been looked at yet"
    rows = [
        (look["number"], look["frozen_name"], look["harness"][:12], look["model"][:12], moment(look["opened_at"]), word)
        for look in looks
        for word in ["complete" if look["is_complete"] else "cut off"]
    ]
    head = ("LOOK", "VERSION", "HARNESS", "MODEL", "OPENED", "STATE")
    return f"{count(len(looks), 'look')} at these held-out tasks so far:\n{table(head, rows)}"


def evaluation_text(result: Evaluation, earlier: list[Json]) -> str:
    """Return an evaluation as text."""
    source = " (recorded completions)" if result.is_recorded else ""
    head = ("ARM", "SOLVED", "EPISODES", "RATE", "95% INTERVAL", "ERRORS", "TOKENS", "COST")
    arms = table(head, [_arm("base", result.base), _arm("frozen", result.frozen)])
    families = table(
        ("FAMILY", "EPISODES", "BASE", "FROZEN"), [(name, *counts) for name, counts in sorted(result.families.items())]
    )
    number = f"look {result.look.number} with this harness"
    before = f"; {count(len(earlier), 'look')} made before at these tasks" if earlier else "; the first at these tasks"
    return "\n".join(
        [
            f"{result.environment} {result.name}, held-out, {result.model.model_id}{source}: {number}{before}",
            "",
            arms,
            "",
            f"gain {points(result.gain)} points per task (95%: {interval(result.interval)}), "
            f"p = {result.p:.4g}; {count(result.wins, 'task')} won, {result.losses} lost",
            f"held-out commitment {result.heldout_commitment}",
            *(f"warning: {warning}" for warning in result.warnings),
            "",
            families,
        ]
    )


def _arm(name: str, arm: ArmResult) -> tuple[object, ...]:
    low, high = arm.ci95
    tokens = arm.usage.prompt_tokens + arm.usage.completion_tokens
    return (
        name,
        arm.successes,
        arm.n,
        percent(arm.rate),
        f"{percent(low)} to {percent(high)}",
        arm.errors,
        grouped(tokens),
        money(arm.usage.cost_usd),
    )
