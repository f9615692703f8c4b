"""Many jobs to episodes: what is played, what is not played again, and what happens when the world fails."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import small_run

from evolve.archive import Archive
from evolve.canaries import Canaries
from evolve.environments.household import create
from evolve.errors import CanaryFound, EnvironmentBroken, InfrastructureError, SealError, UnseenRequestError
from evolve.harness.runtime import HarnessRuntime
from evolve.models.cache import CompletionCache
from evolve.models.cached import CachedModel
from evolve.models.scripted import ScriptedModel
from evolve.progress import Silent
from evolve.protocols import ModelRequest
from evolve.records import Call, Completion, Episode, Observation, Opening, Split, Task
from evolve.rollout import Job, Rollout, RolloutLimits
from evolve.store import EpisodeUse, Purpose
from evolve.store.ledger import Ledger
from evolve.traces import Traces

OFF = HarnessRuntime(None, None)
RUN = "run-1"


class Stand:
    """A rollout over a folder that outlives it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.environment: Any = create({"train": 12, "guard": 2})
        self.tasks: Sequence[Task] = self.environment.tasks(Split.TRAIN)

    def play(
        self, model: ScriptedModel, count: int = 4, *, arms: Sequence[str] = ("",), **limits: Any
    ) -> list[Episode]:
        """Roll out the first tasks once for each arm, as a new process would."""
        jobs = [Job(task, 0, OFF, arm) for task in self.tasks[:count] for arm in arms]
        return asyncio.run(self._play(model, jobs, RolloutLimits(**{"retries": 0, **limits})))

    async def _play(self, model: ScriptedModel, jobs: list[Job], limits: RolloutLimits) -> list[Episode]:
        with Ledger(self.root / "ledger.sqlite") as ledger, CompletionCache(self.root / "completions.jsonl") as cache:
            ledger.start_run(RUN, environment="household", model="m", base_commit="c", config={})
            archive = Archive(ledger, Traces(self.root / "traces"))
            rollout = Rollout(
                self.environment,
                CachedModel(model, cache),
                archive.of_run(RUN),
                limits=limits,
                progress=Silent(),
                stop=asyncio.Event(),
            )
            try:
                return await rollout.roll_out(jobs, Purpose.BASELINE)
            finally:
                await archive.close()

    def ledger(self) -> Ledger:
        return Ledger(self.root / "ledger.sqlite", is_read_only=True)


@pytest.fixture
def stand(tmp_path: Path) -> Stand:
    return Stand(tmp_path)


def test_episodes_come_in_the_order_of_their_jobs(stand: Stand) -> None:
    """However they overlap, the answer to each job stands in its place."""
    episodes = stand.play(small_run.scripted(latency_s=0.001), 8, concurrency=4)
    assert [episode.task_id for episode in episodes] == [task.task_id for task in stand.tasks[:8]]


def test_a_second_time_asks_nothing_and_plays_nothing(stand: Stand) -> None:
    """Episodes that are on record are read back equal, without a request."""
    first = stand.play(small_run.scripted())
    idle = small_run.scripted()
    assert stand.play(idle) == first
    assert idle.requests == []


def test_lost_episodes_are_played_from_kept_completions(stand: Stand) -> None:
    """Where the ledger was begun anew and the completions are there, the same episodes come about, nothing is asked."""
    first = stand.play(small_run.scripted())
    for part in stand.root.glob("ledger.sqlite*"):
        part.unlink()
    idle = small_run.scripted()
    again = stand.play(idle)
    assert idle.requests == []
    assert [e.model_dump(exclude={"wall_s"}) for e in again] == [e.model_dump(exclude={"wall_s"}) for e in first]


def test_arms_that_are_the_same_share_their_episodes(stand: Stand) -> None:
    """Two arms with equal behaviour play once; both have the episode in the ledger, and its cost counts once."""
    model = small_run.scripted()
    episodes = stand.play(model, 2, arms=("", "candidate"))
    assert episodes[0] == episodes[1]
    with stand.ledger() as ledger:
        names = {e.episode_id for e in episodes}
        assert {e.episode_id for e in ledger.episodes(RUN, arm="")} == names
        assert {e.episode_id for e in ledger.episodes(RUN, arm="candidate")} == names
        assert ledger.totals(RUN).requests_asked == len(model.requests)


def test_infrastructure_errors_are_retried(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request that failed is asked again with the next attempt, and the episode is as if nothing had been."""
    monkeypatch.setattr("evolve.rollout.RETRY_PAUSE_S", 0.0)
    (episode,) = stand.play(small_run.scripted(fails_at=[1]), 1, retries=1)
    assert (episode.status, episode.is_success, episode.error) == ("done", True, None)


def test_an_episode_that_cannot_be_played_is_an_error_and_not_a_zero(stand: Stand) -> None:
    """It has no score, says which boundary failed, and a later run plays it."""
    (episode,) = stand.play(small_run.scripted(fails_at=[0]), 1)
    assert (episode.status, episode.score) == ("error", None)
    assert (episode.error or "").startswith("ProviderError: ")
    (mended,) = stand.play(small_run.scripted(), 1)
    assert (mended.episode_id, mended.status) == (episode.episode_id, "done")
    with stand.ledger() as ledger:
        assert [e.status for e in ledger.episodes(RUN)] == ["done"]


def test_a_task_that_cannot_be_opened_is_an_error_too(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment that breaks on opening loses the episode; its record has the task's own words as opening."""

    def broken(*_: object) -> None:
        raise EnvironmentBroken("the simulated user does not answer")

    monkeypatch.setattr("evolve.environments.household.HouseholdEnvironment.open", broken)
    (episode,) = stand.play(small_run.scripted(), 1)
    assert (episode.status, episode.opening.system) == ("error", "")
    assert episode.error == "EnvironmentBroken: the simulated user does not answer"


def test_too_many_errors_stop_the_run(stand: Stand) -> None:
    """Past the set share nothing more is played; what was played is on record."""
    model = small_run.scripted(fails_at=range(1000))
    with pytest.raises(InfrastructureError, match="3 of 12 episodes could not be played"):
        stand.play(model, 12, concurrency=1)
    assert len(model.requests) == 3


def test_an_episode_that_takes_too_long_is_an_error(stand: Stand) -> None:
    """The limit is named; the run goes on."""
    (episode,) = stand.play(small_run.scripted(latency_s=5.0), 1, episode_timeout_s=0.05)
    assert (episode.status, episode.error) == ("error", "TimeoutError: the episode took longer than 0.05 s")


def test_a_request_that_no_recording_holds_ends_the_run_at_once(stand: Stand) -> None:
    """What cannot be mended by another attempt is not retried."""

    def unseen(request: ModelRequest) -> Completion:
        raise UnseenRequestError("not in the recording")

    with pytest.raises(UnseenRequestError):
        stand.play(small_run.scripted(unseen), 1, retries=5)


def test_an_environment_that_breaks_is_infrastructure(stand: Stand) -> None:
    """What an environment raises is not held against the agent."""
    whole = stand.environment

    class Broken:
        card = whole.card

        def open(self, task: Task, trial: int) -> Any:
            session = whole.open(task, trial)

            def step(call: Call) -> Observation:
                raise EnvironmentBroken("the house burnt down")

            session.step = step
            return session

    stand.environment = Broken()
    (episode,) = stand.play(small_run.scripted(), 1)
    assert episode.error == "EnvironmentBroken: the house burnt down"


def test_no_more_than_the_set_number_of_episodes_are_under_way(stand: Stand) -> None:
    """Concurrency bounds what is asked at the same time, and is really reached."""
    under_way, most = 0, 0

    class Counting(ScriptedModel):
        async def complete(self, request: ModelRequest) -> Completion:
            nonlocal under_way, most
            under_way += 1
            most = max(most, under_way)
            try:
                return await super().complete(request)
            finally:
                under_way -= 1

    stand.play(Counting(small_run.agent, latency_s=0.005), 12, concurrency=5)
    assert most == 5


def test_a_run_cannot_record_a_held_out_episode(stand: Stand) -> None:
    """Even an episode that says of itself that it is held out leaves no row in a run."""
    (episode,) = stand.play(small_run.scripted(), 1)
    sealed = episode.model_copy(update={"episode_id": "sealed", "split": Split.HELDOUT})
    with Ledger(stand.root / "ledger.sqlite") as ledger, pytest.raises(SealError, match="held out"):
        ledger.record_episodes([EpisodeUse(sealed, "x.jsonl", 0, "", Purpose.BASELINE)], run_id=RUN)
    with stand.ledger() as ledger:
        assert [e.episode_id for e in ledger.episodes(RUN)] == [episode.episode_id]


def test_an_episode_that_could_not_be_played_is_linked_to_each_arm(stand: Stand) -> None:
    """Two arms that share it both show it as lost."""
    played = stand.play(small_run.scripted(fails_at=[0]), 4, arms=("", "c1"), error_share=1.0)
    lost = [episode.episode_id for episode in played if episode.status == "error"]
    assert lost
    with stand.ledger() as ledger:
        for arm in ("", "c1"):
            assert set(lost) <= {row.episode_id for row in ledger.episodes(RUN, arm=arm)}


def test_a_canary_is_told_to_the_episode_that_holds_it(stand: Stand, tmp_path: Path) -> None:
    """Episodes that end together are written together; only the one with the canary is refused, in its own name."""
    (played,) = stand.play(small_run.scripted(), 1)
    folder = tmp_path / "again"
    canary = "household-canary-90b144250adb8714"
    loud = played.model_copy(update={"episode_id": "loud", "opening": Opening(system="", user=canary)})
    quiet = [played.model_copy(update={"episode_id": f"quiet-{n}"}) for n in range(3)]

    async def record_all() -> list[BaseException | None]:
        with Ledger(folder / "ledger.sqlite") as ledger:
            ledger.start_run(RUN, environment="household", model="m", base_commit="c", config={})
            archive = Archive(ledger, Traces(folder / "traces", canaries=Canaries({"held-out data": canary})))
            keeper = archive.of_run(RUN)
            together = [keeper.record(e, arm=e.episode_id, purpose=Purpose.SCREEN) for e in (*quiet, loud)]
            try:
                return await asyncio.gather(*together, return_exceptions=True)
            finally:
                await archive.close()

    *fine, refused = asyncio.run(record_all())
    assert fine == [None] * 3
    assert isinstance(refused, CanaryFound)
    with Ledger(folder / "ledger.sqlite", is_read_only=True) as ledger:
        assert [row.episode_id for row in ledger.episodes(RUN)] == [e.episode_id for e in quiet]
    assert [episode for _, episode in Traces(folder / "traces").scan()] == quiet
