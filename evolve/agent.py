"""Plays one episode: model, harness, environment, in that order, until the session ends.

It knows nothing of runs, gates or files. What the agent does wrong becomes an observation; what the
world does wrong is raised and ends the attempt.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, closing, nullcontext
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

import orjson

from evolve.harness.episode import EpisodeHarness, Realized
from evolve.harness.runtime import HarnessRuntime
from evolve.models.cached import Answered
from evolve.protocols import Environment, EnvironmentCard, ModelRequest, Session
from evolve.records import (
    Call,
    Completion,
    Episode,
    ErrorKind,
    Json,
    ModelFingerprint,
    Observation,
    ProposedCall,
    Score,
    Step,
    StopReason,
    Task,
    Usage,
    digest_of,
)

T = TypeVar("T")
Acting = Callable[[], AbstractAsyncContextManager[None]]
NOTE_MARK = "[harness]"


class Asker(Protocol):
    """A model behind the completion cache."""

    @property
    def fingerprint(self) -> ModelFingerprint:
        """What identifies the model."""

    async def complete(self, request: ModelRequest, *, owner: str) -> Answered:
        """Answer a request; `owner` is the episode that asks."""


@dataclass
class Transcript:
    """The growing state of one episode: messages to the model, steps of the record, counts."""

    messages: list[Json]
    steps: list[Step] = field(default_factory=list)
    usages: list[Usage] = field(default_factory=list)
    usages_asked: list[Usage] = field(default_factory=list)
    requests: int = 0
    asked: int = 0
    turns: int = 0
    request: str = ""
    forced: Call | None = None


def episode_id(card: EnvironmentCard, task: Task, trial: int, model: ModelFingerprint, harness: str) -> str:
    """Name an episode by what decides it. For a greedy model all trials are the same episode."""
    trial = 0 if model.is_greedy else trial
    return digest_of([card.digest, task.task_id, trial, model.digest, harness])[:24]


async def play(
    environment: Environment,
    task: Task,
    trial: int,
    *,
    model: Asker,
    runtime: HarnessRuntime,
    acting: Acting = nullcontext,
) -> Episode:
    """Play one episode to its end and score it.

    Args:
        acting: entered for each step, from the model's call to what it is told of it.

    Raises:
        InfrastructureError: the endpoint, the environment or the worker failed; nothing is scored.
    """
    started = time.perf_counter()
    card = environment.card
    name = episode_id(card, task, trial, model.fingerprint, runtime.digest)
    session = await off_loop(card, environment.open, task, trial)
    with closing(session):
        harness = runtime.prepare(session.opening, session.tools, task_text=task.text, step_limit=card.step_limit)
        stream = "" if model.fingerprint.is_greedy else f"{task.task_id}/{trial}"
        try:
            player = Player(card, session, harness, model, name, stream=stream, acting=acting)
            stop = await player.play()
            await harness.ready()  # the record of an episode without a step tells of the rules too
            score = await off_loop(card, session.score)
        finally:
            await harness.close()
    wall_s = round(time.perf_counter() - started, 3)
    return player.episode(task, trial, harness=runtime.digest, stop=stop, score=score, wall_s=wall_s)


class Player:
    """The turn-by-turn loop of one episode."""

    def __init__(
        self,
        card: EnvironmentCard,
        session: Session,
        harness: EpisodeHarness,
        model: Asker,
        owner: str,
        *,
        stream: str,
        acting: Acting,
    ) -> None:
        self._card = card
        self._session = session
        self._harness = harness
        self._model = model
        self._owner = owner
        self._stream = stream
        self._acting = acting
        self._tools = [tool.function_schema() for tool in harness.tools]
        self._admissible = session.opening.admissible
        system = [{"role": "system", "content": harness.system}] if harness.system else []
        self.transcript = Transcript([*system, {"role": "user", "content": session.opening.user}])

    async def play(self) -> StopReason:
        """Take turns until the session is done, the steps are used up or the context is full; say which."""
        while len(self.transcript.steps) < self._card.step_limit:
            completion = await self._next_completion()
            if completion.finish_reason == "context_full":
                return "context_full"
            for proposed in completion.calls or (None,):
                await self._harness.ready()
                async with self._acting():
                    is_done = await self._take_step(completion, proposed)
                if is_done:
                    return "finished"
                if len(self.transcript.steps) >= self._card.step_limit:
                    break
            self.transcript.turns += 1
        return "step_limit"

    def episode(
        self, task: Task, trial: int, *, harness: str, stop: StopReason, score: Score, wall_s: float
    ) -> Episode:
        """Return the record of the episode, once it is over; `harness` is the digest of the one it was played with."""
        seen = self.transcript
        return Episode(
            episode_id=self._owner,
            task_id=task.task_id,
            environment=self._card.name,
            family=task.family,
            split=task.split,
            trial=trial,
            model=self._model.fingerprint.digest,
            harness=harness,
            status="done",
            stop=stop,
            opening=self._session.opening,
            opening_firings=tuple(self._harness.opening_firings),
            steps=tuple(seen.steps),
            score=score,
            faults=tuple(self._harness.faults),
            usage=Usage.total(seen.usages),
            usage_asked=Usage.total(seen.usages_asked),
            requests=seen.requests,
            requests_asked=seen.asked,
            wall_s=wall_s,
            isolation=self._harness.isolation,
        )

    async def _next_completion(self) -> Completion:
        seen = self.transcript
        if seen.forced is not None:
            forced, seen.forced, seen.request = seen.forced, None, ""
            return Completion(text="", calls=(_as_proposed(forced),), finish_reason="forced")
        request = ModelRequest(seen.messages, self._tools, self._stream, is_first=seen.asked == 0)
        answered = await self._model.complete(request, owner=self._owner)
        seen.request = answered.key
        seen.requests += 1
        seen.asked += answered.is_asked
        seen.usages.append(answered.completion.usage)
        if answered.is_asked:
            seen.usages_asked.append(answered.completion.usage)
        return answered.completion

    async def _take_step(self, completion: Completion, proposed: ProposedCall | None) -> bool:
        seen = self.transcript
        index = len(seen.steps)
        is_first_call = proposed is None or proposed is completion.calls[0]
        text = completion.text if is_first_call else ""
        realized = await self._harness.realize(
            text, proposed, steps=seen.steps, prober=self._session, admissible=self._admissible
        )
        observation = await self._observe(completion, proposed, realized)
        step = Step(
            index=index,
            turn=seen.turns,
            text=text,
            proposed=proposed,
            executed=realized.call,
            observation=observation,
            is_blocked=realized.message is not None,
            is_forced=completion.finish_reason == "forced",
            firings=realized.firings,
            request=seen.request,
        )
        seen.steps.append(step)
        if observation.admissible is not None:
            self._admissible = observation.admissible
        if not observation.done:
            await self._regulate(step)
        self._extend_messages(seen.steps[-1], is_first_call)
        return observation.done

    async def _observe(self, completion: Completion, proposed: ProposedCall | None, realized: Realized) -> Observation:
        if realized.message is not None:
            return Observation(text=realized.message, admissible=self._admissible)
        if realized.call is not None:
            return await off_loop(self._card, self._session.step, realized.call)
        if completion.malformed is not None:
            words = f"Your tool call could not be parsed: {completion.malformed}"
            return Observation(text=words, error_kind=ErrorKind.MALFORMED_CALL, admissible=self._admissible)
        if proposed is not None:
            words = f"The arguments of {proposed.tool} are not a JSON object."
            return Observation(text=words, error_kind=ErrorKind.MALFORMED_CALL, admissible=self._admissible)
        return await off_loop(self._card, self._session.say, completion.text)

    async def _regulate(self, step: Step) -> None:
        seen = self.transcript
        regulated = await self._harness.regulate(steps=seen.steps, prober=self._session, admissible=self._admissible)
        seen.forced = regulated.forced
        if regulated.firings:
            seen.steps[-1] = step.model_copy(
                update={"note": regulated.note, "firings": step.firings + regulated.firings}
            )

    def _extend_messages(self, step: Step, is_first_call: bool) -> None:
        """Append the turn as it was executed and what came back; call ids are ours, so that requests repeat."""
        words = step.observation.text if step.note is None else f"{step.observation.text}\n\n{NOTE_MARK} {step.note}"
        call = _as_message_call(step)
        if call is None:
            self.transcript.messages += [
                {"role": "assistant", "content": step.text},
                {"role": "user", "content": words},
            ]
            return
        is_rescued = step.proposed is None
        content = "" if is_rescued else step.text
        if is_first_call:
            self.transcript.messages.append({"role": "assistant", "content": content, "tool_calls": [call]})
        else:
            self._last_assistant()["tool_calls"].append(call)
        self.transcript.messages.append({"role": "tool", "tool_call_id": call["id"], "content": words})

    def _last_assistant(self) -> Json:
        return next(m for m in reversed(self.transcript.messages) if m["role"] == "assistant")


async def off_loop(card: EnvironmentCard, function: Callable[..., T], *arguments: object) -> T:
    """Call an environment; one that blocks (it declares so) runs in a thread."""
    if card.is_blocking:
        return await asyncio.to_thread(function, *arguments)
    return function(*arguments)


def _as_proposed(call: Call) -> ProposedCall:
    text = orjson.dumps(call.arguments).decode()
    return ProposedCall(call_id="forced", tool=call.tool, arguments_text=text, arguments=call.arguments)


def _as_message_call(step: Step) -> Json | None:
    """Return the call as history shows it: the executed one, else the proposed one, else None for plain text."""
    if step.executed is not None and not _is_same(step.executed, step.proposed):
        name, arguments = step.executed.tool, orjson.dumps(step.executed.arguments).decode()
    elif step.proposed is not None:
        name, arguments = step.proposed.tool, step.proposed.arguments_text
    else:
        return None
    return {"id": f"call_{step.index}", "type": "function", "function": {"name": name, "arguments": arguments}}


def _is_same(executed: Call, proposed: ProposedCall | None) -> bool:
    return proposed is not None and proposed.tool == executed.tool and proposed.arguments == executed.arguments
