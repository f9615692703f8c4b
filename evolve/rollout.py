"""Rolls out: many jobs to episodes, with bounded concurrency, retries and a record of each.

It decides nothing about what an episode means. An episode that the world broke is retried, then kept with
status `error`; too large a share of those stops the run.
"""

from __future__ import annotations

import asyncio
import gc
import os
import resource
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import chain

from evolve.agent import Asker, episode_id, off_loop, play
from evolve.archive import Keeper
from evolve.errors import CanaryFound, InfrastructureError, Interrupted, UnseenRequestError
from evolve.harness.runtime import HarnessRuntime
from evolve.progress import Finished, Progress, Started
from evolve.protocols import Environment
from evolve.records import Episode, Opening, Task
from evolve.store import Purpose

RETRY_PAUSE_S = 0.5
SHARE_NEEDS = 10
ACTING_AT_ONCE = max(8, os.cpu_count() or 1)
LONGEST_ACT_S = 0.05

OBJECTS_BETWEEN_COLLECTIONS = 50_000
DESCRIPTORS_EACH, DESCRIPTORS_BESIDE = 4, 256  # a worker has two, a request one
GOES_ON = "stopped as asked; the same command goes on from here (a run with --resume)"


@dataclass(frozen=True)
class RolloutLimits:
    """Bounds of a roll-out; see the configuration of the same names."""

    concurrency: int = 8
    episode_timeout_s: float = 900.0
    retries: int = 2
    error_share: float = 0.2


@dataclass(frozen=True)
class Job:
    """One episode that is wanted: a task, a trial, and the harness to play it with. `arm` names whose it is."""

    task: Task
    trial: int
    runtime: HarnessRuntime
    arm: str


Series = list[tuple[str, Job]]
"""Named jobs that are played one after the other."""


class Slots:
    """Lets a few act at once, in the order in which they came; who takes long is waited for by nobody.

    Answers that come together would otherwise all be worked on at once: all next requests would be ready late, and go
    out at the same time again.
    """

    def __init__(self, count: int, longest_s: float = LONGEST_ACT_S) -> None:
        self._free = asyncio.Semaphore(count)
        self._longest_s = longest_s

    def one(self) -> Slot:
        """Return one to wait for and hold, though no longer than the set time: a rule may hang, a step may block."""
        return Slot(self._free, self._longest_s)


class Slot:
    """One of the slots: `async with` waits for it and gives it back."""

    def __init__(self, free: asyncio.Semaphore, longest_s: float) -> None:
        self._free = free
        self._longest_s = longest_s
        self._timer: asyncio.TimerHandle | None = None

    async def __aenter__(self) -> None:
        await self._free.acquire()
        self._timer = asyncio.get_running_loop().call_later(self._longest_s, self._give_back)

    async def __aexit__(self, kind: object, error: object, at: object) -> None:
        self._give_back()

    def _give_back(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._free.release()


class Rollout:
    """Produces the episodes of one run."""

    def __init__(
        self,
        environment: Environment,
        model: Asker,
        archive: Keeper,
        *,
        limits: RolloutLimits,
        progress: Progress,
        stop: asyncio.Event,
    ) -> None:
        self.environment = environment
        self.model = model
        self._archive = archive
        self._limits = limits
        self._progress = progress
        self._stop = stop
        self._slots = Slots(ACTING_AT_ONCE)

    async def roll_out(self, jobs: Sequence[Job], purpose: Purpose) -> list[Episode]:
        """Return an episode for each job, in order; what is on record is not played again.

        Raises:
            InfrastructureError: more than `error_share` of the episodes could not be played.
            BudgetSpent: the budget ended; what was finished is on record.
            CanaryFound: sealed content came out in an episode; the error says in whose.
            Interrupted: a stop was asked for; what was finished is on record.
        """
        names = [self._name(job) for job in jobs]
        known = await self._archive.find(sorted(set(names)))
        self._progress.report(Started(purpose, len(set(names)), len(known)))
        missing = {name: job for name, job in zip(names, jobs, strict=True) if name not in known}
        _allow_descriptors(self._limits.concurrency)
        with _rarer_collections():
            known |= await self._play_all(missing, purpose)
        linked = {(name, job.arm) for name, job in missing.items()}
        await self._link([(n, j) for n, j in zip(names, jobs, strict=True) if (n, j.arm) not in linked], known, purpose)
        return [known[name] for name in names]

    def _name(self, job: Job) -> str:
        return episode_id(self.environment.card, job.task, job.trial, self.model.fingerprint, job.runtime.digest)

    async def _link(self, jobs: Series, known: dict[str, Episode], purpose: Purpose) -> None:
        """Note for each arm which episodes it used that were on record, or that it shares with another arm."""
        for arm in sorted({job.arm for _, job in jobs}):
            mine = [known[name] for name, job in jobs if job.arm == arm]
            await self._archive.link(mine, arm=arm, purpose=purpose)

    async def _play_all(self, jobs: dict[str, Job], purpose: Purpose) -> dict[str, Episode]:
        series = self._in_series(jobs)
        waiting = iter(series)
        done: dict[str, Episode] = {}
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(self._limits.concurrency, len(series))):
                    group.create_task(self._drain(waiting, done, len(jobs), purpose))
        except BaseExceptionGroup as errors:
            raise _first(errors) from errors
        return done

    def _in_series(self, jobs: dict[str, Job]) -> list[Series]:
        """Put the arms of one task and trial in a row: which of them asks what both need is then no matter of luck."""
        is_greedy = self.model.fingerprint.is_greedy
        series: dict[tuple[str, int], Series] = {}
        for name, job in jobs.items():
            series.setdefault((job.task.task_id, 0 if is_greedy else job.trial), []).append((name, job))
        return list(series.values())

    async def _drain(self, waiting: Iterable[Series], done: dict[str, Episode], total: int, purpose: Purpose) -> None:
        for name, job in chain.from_iterable(waiting):
            if self._stop.is_set():
                raise Interrupted(GOES_ON)
            try:
                episode = await self._play_with_retries(name, job)
                await self._archive.record(episode, arm=job.arm, purpose=purpose)
            except CanaryFound as found:
                raise CanaryFound(str(found), arm=job.arm) from found
            done[name] = episode
            self._progress.report(Finished(purpose, episode))
            if episode.status == "error":
                self._check_error_share(done, total)

    async def _play_with_retries(self, name: str, job: Job) -> Episode:
        failure: Exception | None = None
        for attempt in range(self._limits.retries + 1):
            if attempt:
                await asyncio.sleep(RETRY_PAUSE_S * 2 ** (attempt - 1))
            try:
                async with asyncio.timeout(self._limits.episode_timeout_s):
                    return await play(
                        self.environment,
                        job.task,
                        job.trial,
                        model=self.model,
                        runtime=job.runtime,
                        acting=self._slots.one,
                    )
            except UnseenRequestError:
                raise
            except (InfrastructureError, TimeoutError) as error:
                failure = error
        return await self._errored(name, job, failure)

    async def _errored(self, name: str, job: Job, failure: Exception | None) -> Episode:
        words = str(failure) or f"the episode took longer than {self._limits.episode_timeout_s:g} s"
        return Episode(
            episode_id=name,
            task_id=job.task.task_id,
            environment=self.environment.card.name,
            family=job.task.family,
            split=job.task.split,
            trial=job.trial,
            model=self.model.fingerprint.digest,
            harness=job.runtime.digest,
            status="error",
            stop="error",
            opening=await self._opening(job),
            error=f"{type(failure).__name__}: {words}",
        )

    async def _opening(self, job: Job) -> Opening:
        """Return how a lost episode began; where not even that can be had, the task's own words."""
        try:
            session = await off_loop(self.environment.card, self.environment.open, job.task, job.trial)
        except InfrastructureError:
            return Opening(system="", user=job.task.text)
        try:
            return session.opening
        finally:
            session.close()

    def _check_error_share(self, done: dict[str, Episode], total: int) -> None:
        errors = [e for e in done.values() if e.status == "error"]
        if len(errors) > self._limits.error_share * max(total, SHARE_NEEDS):
            raise InfrastructureError(
                f"{len(errors)} of {total} episodes could not be played, the last with: {errors[-1].error}. "
                "Nothing was scored for them. Mend the cause (`evolve doctor`); the same command goes on then "
                "(a run with --resume)."
            )


def _allow_descriptors(concurrency: int) -> None:
    """Raise the limit on open files, as far as the system lets us, to what so many episodes at once may need."""
    needed = DESCRIPTORS_EACH * concurrency + DESCRIPTORS_BESIDE
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    if resource.RLIM_INFINITY != soft < most:
        with suppress(OSError, ValueError):  # a system may allow less than it says
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


@contextmanager
def _rarer_collections() -> Iterator[None]:
    """Have garbage looked for less often: most of what episodes make lives as long as they do, and to look through it
    at each 700 objects, as Python 3.11 does, is a twelfth of what a call costs. For one roll-out at a time.
    """
    before = gc.get_threshold()
    gc.set_threshold(max(before[0], OBJECTS_BETWEEN_COLLECTIONS) if before[0] else 0, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _first(errors: BaseExceptionGroup) -> BaseException:
    """Return one plain error out of a group: the first that is not a mere cancellation."""
    for error in errors.exceptions:
        found = _first(error) if isinstance(error, BaseExceptionGroup) else error
        if not isinstance(found, asyncio.CancelledError):
            return found
    return errors.exceptions[0]
