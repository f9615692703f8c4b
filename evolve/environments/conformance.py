"""What every environment has to keep, checked through the protocol alone: `evolve bench verify NAME`.

A check plays a few training tasks with seeded nonsense and looks at what comes back. The held-out split is never
listed: what is checked of it is that it cannot be had.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from itertools import islice
from random import Random
from typing import cast

from pydantic import Field

from evolve.errors import EvolveError, SealError, UserError
from evolve.protocols import Environment, Session
from evolve.records import Call, Json, Look, LoopSplit, Observation, Record, Split, Task, Tool

NONSENSE_STEPS = 6
TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
DIGEST = re.compile(r"[0-9a-f]{64}")
STRANGE_TEXTS = ("", " ", "hello", '{"tool": 1}', "\x00\ud7ff", "é" * 5000)


class Check(Record):
    """One thing that an environment has to keep. `detail` says what was seen where it does not hold."""

    name: str
    holds: bool
    detail: str = ""


class Baseline(Record):
    """The score of an agent that does nothing, over the training tasks that were looked at."""

    tasks: int
    mean: float = Field(description="mean score, 0 to 1")
    successes: int


@dataclass(frozen=True)
class Subject:
    """What is checked: a way to make the environment anew, one made already, and a few of its training tasks."""

    name: str
    make: Callable[[], Environment]
    made: Environment
    tasks: Sequence[Task]

    def open(self, task: Task) -> Session:
        """Open a session, trial 0."""
        return self.made.open(task, 0)


def subject_of(name: str, make: Callable[[], Environment], *, tasks: int = 3) -> Subject:
    """Return what the checks look at: up to `tasks` training tasks, spread over the list."""
    made = make()
    listed = made.tasks(Split.TRAIN)
    stride = max(1, len(listed) // tasks)
    return Subject(name, make, made, list(islice(listed[::stride], tasks)))


def conformance(subject: Subject) -> Iterator[Check]:
    """Run the checks one after the other; an exception out of an environment is a check that does not hold."""
    for name, check in CHECKS.items():
        try:
            faults = list(check(subject))
        except Exception as error:  # whatever an environment raises here is what is being looked for
            faults = [f"{type(error).__name__}: {error}"]
        yield Check(name=name, holds=not faults, detail="; ".join(islice(faults, 3)))


def do_nothing(subject: Subject) -> Baseline:
    """Score each task right after its opening."""
    scores = []
    for task in subject.tasks:
        with closing(subject.open(task)) as session:
            scores.append(session.score())
    mean = sum(score.value for score in scores) / len(scores)
    return Baseline(tasks=len(scores), mean=round(mean, 4), successes=sum(score.success for score in scores))


def _card(subject: Subject) -> Iterator[str]:
    card, again = subject.made.card, subject.make().card
    if card.name != subject.name:
        yield f"the card says {card.name!r}; it was asked for as {subject.name!r}"
    if card.step_limit < 1 or not 0 < card.pass_mark <= 1:
        yield f"step limit {card.step_limit} and pass mark {card.pass_mark}: at least 1, and above 0 up to 1"
    if not DIGEST.fullmatch(card.digest):
        yield f"the digest {card.digest!r} is no SHA-256 in hex"
    if card != again:
        yield "made a second time, its card differs"


def _splits(subject: Subject) -> Iterator[str]:
    loop: tuple[LoopSplit, ...] = (Split.TRAIN, Split.GUARD)
    listed: dict[LoopSplit, Sequence[Task]] = {split: subject.made.tasks(split) for split in loop}
    if not listed[Split.TRAIN]:
        yield "no training task"
    for split, tasks in listed.items():
        wrong = [t.task_id for t in tasks if (t.split, t.environment) != (split, subject.name) or not t.text.strip()]
        if wrong:
            yield f"{wrong[0]}: wrong split, wrong environment or no text"
        if [t.model_dump() for t in tasks] != [t.model_dump() for t in subject.made.tasks(split)]:
            yield f"the {split} tasks are listed in another order the second time"
    twice = [name for name, n in Counter(t.task_id for tasks in listed.values() for t in tasks).items() if n > 1]
    if twice:
        yield f"{twice[0]} stands twice in train and guard"


def _seal(subject: Subject) -> Iterator[str]:
    foreign = Look(
        look_id="conformance",
        environment=f"not-{subject.name}",
        frozen_name="none",
        harness="none",
        model="none",
        opened_at="",
        number=1,
    )
    asked: dict[str, Callable[[], Sequence[Task]]] = {
        "tasks(heldout)": lambda: subject.made.tasks(cast(LoopSplit, Split.HELDOUT)),
        "heldout_tasks(a look for another environment)": lambda: subject.made.heldout_tasks(foreign),
    }
    for what, ask in asked.items():
        try:
            ask()
        except SealError:
            continue
        yield f"{what} answers instead of raising SealError"
    commitment = subject.made.heldout_digest()
    if commitment is not None and not DIGEST.fullmatch(commitment):
        yield f"heldout_digest() gives {commitment!r}, neither None nor a SHA-256 in hex"
    if commitment != subject.make().heldout_digest():
        yield "made a second time, it commits to other held-out tasks"


def _opening(subject: Subject) -> Iterator[str]:
    for task in subject.tasks:
        with closing(subject.open(task)) as one, closing(subject.open(task)) as other:
            if not one.opening.user.strip():
                yield f"{task.task_id}: the user's first message is empty"
            if one.opening != other.opening or list(one.tools) != list(other.tools):
                yield f"{task.task_id}: opened twice, it begins differently"


def _tools(subject: Subject) -> Iterator[str]:
    with closing(subject.open(subject.tasks[0])) as session:
        names = [tool.name for tool in session.tools]
        if not names or len(set(names)) < len(names):
            yield f"no tools, or two of one name: {names}"
        for tool in session.tools:
            if not TOOL_NAME.fullmatch(tool.name):
                yield f"{tool.name!r}: a tool's name is 1 to 64 letters, digits, _ or -"
            if tool.parameters.get("type") != "object" or not isinstance(tool.parameters.get("properties"), dict):
                yield f"{tool.name}: its parameters are no JSON schema of an object with properties"


def _deterministic(subject: Subject) -> Iterator[str]:
    for task in subject.tasks:
        with closing(subject.open(task)) as one, closing(subject.open(task)) as other:
            alone = [one.step(call) for call in nonsense(one.tools, task.task_id)]
            again = [other.step(call) for call in nonsense(other.tools, task.task_id)]
            if alone != again or one.score() != other.score():
                yield f"{task.task_id}: the same calls were answered or scored differently"


def _independent(subject: Subject) -> Iterator[str]:
    """Sessions that take turns see what each would see alone."""
    alone = []
    for task in subject.tasks:
        with closing(subject.open(task)) as session:
            alone.append([session.step(call) for call in nonsense(session.tools, task.task_id)])
    with ExitStack() as stack:
        opened = [stack.enter_context(closing(subject.open(task))) for task in subject.tasks]
        calls = [list(nonsense(s.tools, t.task_id)) for s, t in zip(opened, subject.tasks, strict=True)]
        turns: list[list[Observation]] = [[] for _ in opened]
        for step in range(NONSENSE_STEPS):
            for session, mine, seen in zip(opened, calls, turns, strict=True):
                seen.append(session.step(mine[step]))
    for task, one, other in zip(subject.tasks, alone, turns, strict=True):
        if one != other:
            yield f"{task.task_id}: beside other sessions it answered differently than alone"


def _mistakes(subject: Subject) -> Iterator[str]:
    with closing(subject.open(subject.tasks[0])) as session:
        if session.step(Call(tool="no_such_tool", arguments={})).error_kind is None:
            yield "a call of a tool that is not there has no error kind"
    for arguments in ({}, {"no_such_argument": 1}):
        for tool in session.tools:
            if not arguments and not tool.parameters.get("required"):
                continue
            with closing(subject.open(subject.tasks[0])) as fresh:
                if fresh.step(Call(tool=tool.name, arguments=arguments)).error_kind is None:
                    yield f"{tool.name}({arguments}) has no error kind"


def _plain_text(subject: Subject) -> Iterator[str]:
    for text in STRANGE_TEXTS:
        with closing(subject.open(subject.tasks[0])) as session:
            session.say(text)
    yield from ()


def _probes(subject: Subject) -> Iterator[str]:
    """A read-only tool may be probed and changes nothing; any other is refused and changes nothing either."""
    task = subject.tasks[0]
    with closing(subject.open(task)) as plain, closing(subject.open(task)) as probed:
        for call in nonsense(plain.tools, task.task_id):
            for tool in probed.tools:
                answer = probed.probe(Call(tool=tool.name, arguments=_arguments(tool, Random(tool.name))))  # noqa: S311
                if not tool.read_only and answer.error_kind is None:
                    yield f"{tool.name} is not read-only and answers a probe"
            if plain.step(call) != probed.step(call):
                yield f"after probes, {call.tool} was answered differently"
        if plain.score() != probed.score():
            yield "probes changed the score"


def _scores(subject: Subject) -> Iterator[str]:
    mark = subject.made.card.pass_mark
    for task in subject.tasks:
        with closing(subject.open(task)) as session:
            for call in (None, *nonsense(session.tools, task.task_id)):
                if call is not None:
                    session.step(call)
                first, second = session.score(), session.score()
                if first != second:
                    yield f"{task.task_id}: scored twice, the scores differ"
                if first.success != (first.value >= mark) or not first.version:
                    yield f"{task.task_id}: success is not 'value at the pass mark or above', or no scorer version"


def _strangers(subject: Subject) -> Iterator[str]:
    stranger = subject.tasks[0].model_copy(update={"task_id": "no-such-task"})
    try:
        subject.open(stranger).close()
    except UserError:
        return
    yield "a task that is none of its own was opened"


def _canary(subject: Subject) -> Iterator[str]:
    canary = subject.made.card.canary
    if not canary:
        return
    for task in subject.tasks:
        with closing(subject.open(task)) as session:
            said = [session.opening.system, session.opening.user, task.text]
            said += [session.step(call).text for call in nonsense(session.tools, task.task_id)]
            if any(canary in text for text in said):
                yield f"{task.task_id}: its canary, a text of hidden data, was shown"


def _closing(subject: Subject) -> Iterator[str]:
    session = subject.open(subject.tasks[0])
    session.close()
    session.close()
    yield from ()


CHECKS: Mapping[str, Callable[[Subject], Iterable[str]]] = {
    "its card is complete and repeats": _card,
    "train and guard are listed, disjoint and in a fixed order": _splits,
    "the held-out split is sealed": _seal,
    "a task opens the same way twice": _opening,
    "tools are function schemas": _tools,
    "the same calls give the same answers and score": _deterministic,
    "sessions do not touch each other": _independent,
    "mistakes of an agent are observations with a kind": _mistakes,
    "plain text is answered": _plain_text,
    "probes change nothing": _probes,
    "scores are pure and agree with the pass mark": _scores,
    "a foreign task is refused": _strangers,
    "its canary is not shown": _canary,
    "a session may be closed twice": _closing,
}


def nonsense(tools: Sequence[Tool], seed: str) -> list[Call]:
    """Return seeded calls that fit the schemas and mean nothing."""
    random = Random(seed)  # noqa: S311  repeatable on purpose
    chosen = [random.choice(list(tools)) for _ in range(NONSENSE_STEPS)]
    return [Call(tool=tool.name, arguments=_arguments(tool, random)) for tool in chosen]


def _arguments(tool: Tool, random: Random) -> Json:
    properties: Json = tool.parameters.get("properties", {})
    return {name: _value(properties.get(name, {}), random) for name in tool.parameters.get("required", ())}


def _value(schema: Json, random: Random) -> object:
    if schema.get("enum"):
        return random.choice(schema["enum"])
    kind = schema.get("type")
    plain: dict[object, object] = {
        "integer": random.randint(0, 9),
        "number": random.randint(0, 9),
        "boolean": random.random() < 0.5,
        "array": [],
        "object": {},
    }
    return plain.get(kind, f"nonsense {random.randint(0, 99)}")


def broken(error: EvolveError) -> Check:
    """Return the check that stands for all others where an environment cannot even be made."""
    return Check(name="it can be made", holds=False, detail=str(error))
