"""The checks: each looks at a subject and yields the faults that it sees, none where all is well."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from random import Random
from typing import cast

from evolve.environments.conformance.nonsense import NONSENSE_STEPS, arguments_for, nonsense
from evolve.environments.conformance.subject import Subject
from evolve.errors import SealError, UserError
from evolve.records import Call, Look, LoopSplit, Observation, Split, Task

TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
DIGEST = re.compile(r"[0-9a-f]{64}")
STRANGE_TEXTS = ("", " ", "hello", '{"tool": 1}', "\x00\ud7ff", "é" * 5000)


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
                answer = probed.probe(Call(tool=tool.name, arguments=arguments_for(tool, Random(tool.name))))  # noqa: S311
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
