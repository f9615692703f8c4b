"""The held-out evaluation: base (harness off) against frozen, paired by task, once, on the record.

The only module that obtains held-out tasks, and it does so only with a look that the ledger wrote down first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evolve.assembly import Bench, make_rollout, open_bench
from evolve.config import Config
from evolve.freeze import frozen_harness
from evolve.gate.interval import gain_interval
from evolve.gate.scores import PairedScores, TaskScores, table
from evolve.gate.signflip import task_p
from evolve.harness.artifact import Harness, read_harness
from evolve.harness.runtime import HarnessRuntime
from evolve.holding import Held, hold_workspace
from evolve.loop.stopping import stop_signals
from evolve.progress import Progress, Said
from evolve.protocols import Model
from evolve.rates import wilson
from evolve.records import ArmResult, Episode, Evaluation, FrozenHarness, Look, ModelFingerprint, Usage
from evolve.repository import Repository, harness_folder
from evolve.rollout import Job, Rollout
from evolve.seal import commitment_sentence, is_untold, mark_look, repeat_warning, require_sealed
from evolve.store import CommitmentEntry, LookEntry, Purpose
from evolve.workspace import Workspace

if TYPE_CHECKING:
    from evolve.store.ledger import Ledger


async def evaluate(
    workspace: Workspace,
    config: Config,
    *,
    name: str,
    environ: Mapping[str, str],
    progress: Progress,
    model: Model | None = None,
    tell: Callable[[Evaluation], None] | None = None,
) -> Evaluation:
    """Evaluate a frozen harness on the held-out tasks and close the look with the result.

    A look that a kill cut off is taken up again; it is still one look, and so is one whose result nobody was told.

    Args:
        name: name of the frozen harness.
        environ: where keys are read from, and SOURCE_DATE_EPOCH.
        model: asked in place of the one that the configuration describes.
        tell: shows the result to people; only then is the look remembered as told. None: it counts as told when this
            returns.

    Raises:
        RepositoryError: nothing is frozen under that name.
        SealError: tag, files, ledger, looks, environment and commitment do not agree; no look was taken.
        CanaryFound: gold came out in an episode; the look stays open.
        InfrastructureError: too many episodes could not be played; the look stays open.
    """
    with hold_workspace(workspace, config, environ) as held:
        frozen = frozen_harness(held.repository, environment=config.environment, name=name)
        async with (
            open_bench(workspace, config, held.ledger, environ=environ, spent=Usage(), model=model) as bench,
            stop_signals(workspace, progress) as stop,
        ):
            options = config.environments.get(config.environment, {})
            heldout = require_sealed(held.ledger, bench.environment, options, frozen)
            result = await _look_once(held, bench, frozen, heldout=heldout, config=config, progress=progress, stop=stop)
        if tell is not None:
            tell(result)
        mark_look(held.repository, result.look, heldout.digest, result.model_dump(mode="json"))
    return result


async def _look_once(
    held: Held,
    bench: Bench,
    frozen: FrozenHarness,
    *,
    heldout: CommitmentEntry,
    config: Config,
    progress: Progress,
    stop: asyncio.Event,
) -> Evaluation:
    """Take the look that is due, or take up one that was cut off, and close it with its result."""
    repository, ledger, model = held.repository, held.ledger, bench.model.fingerprint
    harness = read_harness(repository.read_files(frozen.commit, harness_folder(config.environment)))
    runtimes = _runtimes(bench, config, harness)
    entry = _take_look(repository, ledger, frozen, model, runtimes)
    look = entry.look
    if entry.result is not None:
        return Evaluation.model_validate(entry.result)
    mark_look(repository, look, heldout.digest)
    _announce(look, heldout, progress)
    rollout = make_rollout(bench, config, bench.archive.of_look(look.look_id), progress=progress, stop=stop)
    arms = await _play(rollout, bench, config, look, runtimes)
    result = _result(look, frozen, model, arms, config=config, heldout=heldout.digest)
    ledger.close_look(look.look_id, result.model_dump(mode="json"))
    return result


@dataclass(frozen=True)
class Arms:
    """The episodes of both arms, job by job."""

    base: tuple[Episode, ...]
    frozen: tuple[Episode, ...]


def _runtimes(bench: Bench, config: Config, harness: Harness) -> dict[str, HarnessRuntime]:
    """Return what plays each arm, by the arm's name."""
    settings = config.harness
    return {
        "base": HarnessRuntime(None, None),
        "frozen": HarnessRuntime(harness, bench.pool, cap=settings.cap, off=frozenset(settings.off)),
    }


def _take_look(
    repository: Repository,
    ledger: Ledger,
    frozen: FrozenHarness,
    model: ModelFingerprint,
    runtimes: Mapping[str, HarnessRuntime],
) -> LookEntry:
    """Write a look down, or take up the one that was cut off: it is open, or closed and nobody was told its result.

    One that other switches of the harness were played in is not taken up: to go on with those would be a second choice.
    """
    wanted = (frozen.name, frozen.harness, model.digest)
    switches = {runtime.digest for runtime in runtimes.values()}
    for entry in ledger.looks(frozen.environment):
        look = entry.look
        if (look.frozen_name, look.harness, look.model) == wanted and (
            is_untold(repository, look)
            if entry.result is not None
            else {row.harness for row in ledger.look_episodes(look.look_id)} <= switches
        ):
            return entry
    return LookEntry(
        look=ledger.open_look(
            environment=frozen.environment, frozen_name=frozen.name, harness=frozen.harness, model=model.digest
        )
    )


def _announce(look: Look, heldout: CommitmentEntry, progress: Progress) -> None:
    progress.report(Said(commitment_sentence(look.environment, heldout)))
    if warning := repeat_warning(look):
        progress.report(Said(warning, "warning"))


async def _play(
    rollout: Rollout, bench: Bench, config: Config, look: Look, runtimes: Mapping[str, HarnessRuntime]
) -> Arms:
    """Play both arms, task by task and trial by trial, so that they meet the same conditions."""
    trials = 1 if bench.model.fingerprint.is_greedy else config.evaluation.trials
    jobs = [
        Job(task, trial, runtime, name)
        for task in bench.environment.heldout_tasks(look)
        for trial in range(trials)
        for name, runtime in runtimes.items()
    ]
    episodes = await rollout.roll_out(jobs, Purpose.EVALUATION)
    return Arms(tuple(episodes[0::2]), tuple(episodes[1::2]))


def _result(
    look: Look, frozen: FrozenHarness, model: ModelFingerprint, arms: Arms, *, config: Config, heldout: str
) -> Evaluation:
    scores = _paired(arms)
    interval = gain_interval(scores)
    moved = list(scores.differences.values())
    return Evaluation(
        environment=look.environment,
        name=frozen.name,
        look=look,
        model=model,
        is_recorded=config.model.kind == "recorded",
        base=_arm(arms.base),
        frozen=_arm(arms.frozen),
        gain=round(interval.estimate, 6),
        interval=(round(interval.low, 6), round(interval.high, 6)),
        p=round(task_p(scores), 6),
        wins=sum(change > 0 for change in moved),
        losses=sum(change < 0 for change in moved),
        families=_families(arms),
        heldout_commitment=heldout,
        warnings=tuple(filter(None, [repeat_warning(look)])),
    )


def _paired(arms: Arms) -> PairedScores:
    """Pair both arms by task; success counts, so that the gain is in tasks solved."""
    rows: dict[str, list[tuple[Episode, Episode]]] = {}
    for base, frozen in zip(arms.base, arms.frozen, strict=True):
        rows.setdefault(base.task_id, []).append((base, frozen))
    return table(
        TaskScores(
            task_id=task,
            family=pairs[0][0].family,
            fold="train",
            incumbent=tuple(_success(base) for base, _ in pairs),
            candidate=tuple(_success(frozen) for _, frozen in pairs),
        )
        for task, pairs in rows.items()
    )


def _success(episode: Episode) -> float | None:
    return None if episode.score is None else float(episode.is_success)


def _arm(episodes: Sequence[Episode]) -> ArmResult:
    scored = [episode for episode in episodes if episode.score is not None]
    successes = sum(episode.is_success for episode in scored)
    low, high = wilson(successes, len(scored))
    return ArmResult(
        n=len(scored),
        successes=successes,
        rate=round(successes / len(scored), 6) if scored else 0.0,
        ci95=(round(low, 6), round(high, 6)),
        errors=len(episodes) - len(scored),
        usage=Usage.total(episode.usage for episode in scored),
    )


def _families(arms: Arms) -> dict[str, tuple[int, int, int]]:
    names = sorted({episode.family for episode in arms.base})
    return {
        name: (
            sum(e.family == name for e in arms.base),
            sum(e.family == name and e.is_success for e in arms.base),
            sum(e.family == name and e.is_success for e in arms.frozen),
        )
        for name in names
    }
