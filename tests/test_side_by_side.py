"""What happens at the same time in a roll-out, and what one after the other."""

from __future__ import annotations

import asyncio
import gc
import os
import resource
import signal
import threading
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest
from harness.worker_play import children_of

from evolve import rollout
from evolve.agent import play
from evolve.archive import Archive
from evolve.canaries import Canaries
from evolve.errors import CanaryFound, ProviderError, UnseenRequestError
from evolve.harness.artifact import Harness, read_harness
from evolve.harness.runtime import HarnessRuntime
from evolve.harness.worker import WorkerPool
from evolve.models.cache import CompletionCache
from evolve.models.cached import CachedModel
from evolve.models.scripted import ScriptedModel, by_turn, reply_call
from evolve.progress import Event, Finished, Progress, Silent
from evolve.protocols import EnvironmentCard, ModelRequest
from evolve.records import Call, Completion, Episode, Observation, Opening, Score, Split, Task, Tool
from evolve.redteam.rule_code import source
from evolve.rollout import Job, Rollout, RolloutLimits
from evolve.store import Purpose
from evolve.store.ledger import Ledger
from evolve.traces import Traces

TOOL = Tool(name="press", description="Press.", parameters={"type": "object", "properties": {}})
RULES = """
from evolve.rules import PASS, action_rule

@action_rule(id="action.pass", strength="note", evidence="a test")
def let_pass(view, memory):
    return PASS
"""
TRAJECTORY = """
from evolve.rules import Note, trajectory_rule

@trajectory_rule(id="trajectory.note", strength="note", evidence="a test")
def note(view, memory):
    return Note("Go on.")
"""


class Buttons:
    """Tasks that are done after three calls, each noted in a log; `in_step` is called with each."""

    def __init__(self, log: list[str], *, is_blocking: bool = False, in_step: Callable[[], None] | None = None) -> None:
        self.card = EnvironmentCard(
            name="buttons",
            version="1",
            step_limit=5,
            pass_mark=1.0,
            description="Press.",
            digest="b",
            is_blocking=is_blocking,
        )
        self.log = log
        self.in_step = in_step or (lambda: None)

    def open(self, task: Task, trial: int) -> Pressing:
        return Pressing(self, task.task_id)


class Pressing:
    """One episode of it."""

    tools: Sequence[Tool] = (TOOL,)

    def __init__(self, buttons: Buttons, name: str) -> None:
        self.opening = Opening(system="", user=name)
        self._buttons = buttons
        self._name = name
        self._pressed = 0

    def step(self, call: Call) -> Observation:
        self._buttons.log.append(f"{self._name} acts")
        self._buttons.in_step()
        self._pressed += 1
        return Observation(text="Click.", done=self._pressed == 3)

    def say(self, text: str) -> Observation:
        return Observation(text="Press.")

    def probe(self, call: Call) -> Observation:
        return Observation(text="")

    def score(self) -> Score:
        return Score(value=1.0, success=True, version="1")

    def close(self) -> None:
        self._buttons.log.append(f"{self._name} is closed")


def harness(action: str = RULES) -> Harness:
    """Return a harness with a rule in each of the two layers that rules are of."""
    head = b'schema_version = 1\nenvironment = "buttons"\n'
    return read_harness({"harness.toml": head, "action.py": action.encode(), "trajectory.py": TRAJECTORY.encode()})


def task(number: int) -> Task:
    """Return a task."""
    return Task(task_id=f"t{number}", environment="buttons", split=Split.TRAIN, family="f", text="Press.")


def one_episode(
    tmp_path: Path,
    log: list[str],
    answer: Callable[[WorkerPool], Callable[[ModelRequest], Awaitable[Completion]]],
    rules: str = RULES,
    canaries: Canaries | None = None,
) -> Episode:
    """Play one episode with a model that knows the pool of rule workers."""

    async def playing() -> Episode:
        with CompletionCache(tmp_path / "completions.jsonl") as cache:
            async with WorkerPool(canaries=canaries) as pool:
                model = Answering(answer(pool))
                runtime = HarnessRuntime(harness(rules), pool)
                try:
                    return await play(Buttons(log), task(0), 0, model=CachedModel(model, cache), runtime=runtime)  # type: ignore[arg-type]
                finally:
                    await no_worker_is_left(pool)

    return asyncio.run(playing())


class Answering(ScriptedModel):
    """A model whose answers are a coroutine's."""

    def __init__(self, answer: Callable[[ModelRequest], Awaitable[Completion]]) -> None:
        super().__init__([])
        self._answer = answer

    async def complete(self, request: ModelRequest) -> Completion:
        return await self._answer(request)


async def no_worker_is_left(pool: WorkerPool) -> None:
    """Wait until the zygote has no child any more; fail where it keeps one."""
    for _ in range(1000):
        if not children_of(pool.zygote_process_id):
            return
        await asyncio.sleep(0.01)
    raise AssertionError(children_of(pool.zygote_process_id))


def test_rules_load_while_the_model_writes_its_first_turn(tmp_path: Path) -> None:
    """The first request goes out although no worker can start: the zygote is stopped, and the model lets it go on."""

    def answer(pool: WorkerPool) -> Callable[[ModelRequest], Awaitable[Completion]]:
        assert pool.zygote_process_id is not None
        os.kill(pool.zygote_process_id, signal.SIGSTOP)

        async def complete(request: ModelRequest) -> Completion:
            os.kill(pool.zygote_process_id or 0, signal.SIGCONT)
            return by_turn([reply_call("press")])(request)

        return complete

    episode = one_episode(tmp_path, [], answer)
    assert [firing.unit for firing in episode.firings] == ["trajectory.note"] * 2
    assert (episode.is_success, episode.faults) == (True, ())


def test_an_episode_without_a_step_tells_of_its_rules_too(tmp_path: Path) -> None:
    """Whether a harness loads stands in the record however soon the episode is over."""

    async def full(request: ModelRequest) -> Completion:
        return Completion(text="", finish_reason="context_full")

    log: list[str] = []
    episode = one_episode(tmp_path, log, lambda pool: full, rules="1 / 0\n")
    assert (episode.stop, episode.steps) == ("context_full", ())
    assert [(fault.unit, fault.kind) for fault in episode.faults] == [("harness", "raised")]
    assert log == ["t0 is closed"]


@pytest.mark.parametrize("pause_s", [0.0, 0.3], ids=["while it starts", "after it started"])
def test_a_model_that_fails_leaves_no_worker_behind(tmp_path: Path, pause_s: float) -> None:
    """The worker ends with its episode, ready or not, and so does the session."""
    log: list[str] = []

    async def failing(request: ModelRequest) -> Completion:
        await asyncio.sleep(pause_s)
        raise ProviderError("the endpoint is gone")

    with pytest.raises(ProviderError, match="the endpoint is gone"):
        one_episode(tmp_path, log, lambda pool: failing)
    assert log == ["t0 is closed"]


def test_an_episode_that_is_cancelled_twice_leaves_no_worker_behind(tmp_path: Path) -> None:
    """Its worker is ready and was not asked yet; the second time comes while the first is still carried out."""

    async def playing() -> None:
        with CompletionCache(tmp_path / "completions.jsonl") as cache:
            async with WorkerPool() as pool:
                model, runtime = (
                    CachedModel(pressing(latency_s=30.0), cache, grace_s=0.0),
                    HarnessRuntime(harness(), pool),
                )
                playing = asyncio.create_task(play(Buttons([]), task(0), 0, model=model, runtime=runtime))  # type: ignore[arg-type]
                await asyncio.sleep(0.5)
                playing.cancel()
                await asyncio.sleep(0)
                playing.cancel()
                await asyncio.wait({playing})
                assert playing.cancelled()
                await no_worker_is_left(pool)
                await model.close()

    asyncio.run(playing())


def test_a_canary_in_rules_outranks_a_model_that_fails_meanwhile(tmp_path: Path) -> None:
    """A hit ends the run; it must not be lost because the episode ends for another reason before rules are needed."""
    canary = "buttons-canary-90b144250adb8714"

    async def failing(request: ModelRequest) -> Completion:
        await asyncio.sleep(0.3)
        raise ProviderError("the endpoint is gone")

    rules = RULES.replace('"a test"', f'"{canary}"')
    with pytest.raises(CanaryFound):
        one_episode(tmp_path, [], lambda pool: failing, rules, Canaries({"gold": canary}))


def test_rules_that_hang_hold_nobody_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where one episode acts at once, one without fault that comes last ends before those that came first and hang."""
    monkeypatch.setattr(rollout, "ACTING_AT_ONCE", 1)
    hanging = source("os.read(3, 1)")
    ended: list[str] = []

    class Noting(Silent):
        def report(self, event: Event) -> None:
            if isinstance(event, Finished):
                ended.append(event.episode.task_id)

    roll_out(tmp_path, Buttons([]), pressing(), 4, rules=[hanging] * 3 + [RULES], progress=Noting(), patience_s=1.0)
    assert ended[0] == "t3"
    assert sorted(ended) == ["t0", "t1", "t2", "t3"]


def test_garbage_is_looked_for_as_ever_once_a_roll_out_is_over(tmp_path: Path) -> None:
    """The process's own setting is back after an error too, and is another meanwhile."""
    before, meanwhile = gc.get_threshold(), []

    def failing(request: ModelRequest) -> Completion:
        meanwhile.append(gc.get_threshold())
        raise UnseenRequestError("not in the recording")

    with pytest.raises(UnseenRequestError):
        roll_out(tmp_path, Buttons([]), ScriptedModel(failing), 1)
    assert gc.get_threshold() == before
    assert meanwhile[0][0] > before[0]


def test_more_files_may_be_open_where_more_episodes_are_played(tmp_path: Path) -> None:
    """A low soft limit is raised to what the roll-out may need; the hard one is the system's."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (200, hard))
    try:
        roll_out(tmp_path, Buttons([]), pressing(latency_s=0.2), 100)
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (656, hard)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def pressing(*, latency_s: float = 0.0) -> ScriptedModel:
    """Return a model that presses."""
    return ScriptedModel(by_turn([reply_call("press")]), latency_s=latency_s)


def roll_out(
    tmp_path: Path,
    environment: Buttons,
    model: ScriptedModel,
    count: int,
    *,
    rules: Sequence[str] = (RULES,),
    progress: Progress | None = None,
    patience_s: float = 10.0,
) -> None:
    """Play so many tasks at once, each with the rules in its place or the last ones."""

    async def playing() -> None:
        with Ledger(tmp_path / "ledger.sqlite") as ledger, CompletionCache(tmp_path / "completions.jsonl") as cache:
            ledger.start_run("r", environment="buttons", model="m", base_commit="c", config={})
            archive = Archive(ledger, Traces(tmp_path / "traces"))
            async with WorkerPool(patience_s=patience_s) as pool:
                runtimes = [HarnessRuntime(harness(text), pool) for text in rules]
                whole = Rollout(
                    environment,  # type: ignore[arg-type]
                    CachedModel(model, cache),
                    archive.of_run("r"),
                    limits=RolloutLimits(concurrency=count),
                    progress=progress or Silent(),
                    stop=asyncio.Event(),
                )
                jobs = [Job(task(n), 0, runtimes[min(n, len(runtimes) - 1)], "") for n in range(count)]
                episodes = await whole.roll_out(jobs, Purpose.BASELINE)
            await archive.close()
            assert [episode.is_success for episode in episodes] == [True] * count

    asyncio.run(playing())


def test_answers_that_come_together_are_taken_up_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where one episode acts at once, it has asked again before the next acts, though its rules are asked between."""
    monkeypatch.setattr(rollout, "ACTING_AT_ONCE", 1)
    log: list[str] = []

    class Noting(ScriptedModel):
        async def complete(self, request: ModelRequest) -> Completion:
            log.append(f"{request.messages[0]['content']} asks")
            return await super().complete(request)

    roll_out(tmp_path, Buttons(log), Noting(by_turn([reply_call("press")]), latency_s=0.05), 6)
    acts = [place for place, entry in enumerate(log) if entry.endswith("acts")]
    assert len(acts) == 18
    after = [(log[place].split()[0], log[place + 1]) for place in acts]
    assert all(then in (f"{name} asks", f"{name} is closed") for name, then in after)


def test_environments_that_block_do_not_wait_for_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However few may act at once, steps that take their time in threads take it side by side."""
    monkeypatch.setattr(rollout, "ACTING_AT_ONCE", 1)
    together = threading.Barrier(3)

    def in_step() -> None:
        together.wait(timeout=20)

    roll_out(tmp_path, Buttons([], is_blocking=True, in_step=in_step), pressing(), 3)
