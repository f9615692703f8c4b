"""The life of one worker: compile the rules where that was not done yet, load them, then answer calls.

Each of that is one JSON line in and one out.
The history of the episode is kept here, so that the host sends each step once.
"""

import dataclasses
import json
import os
import signal
from collections.abc import Callable, Iterable
from typing import Any, NoReturn, TypeVar

from evolve.harness.worker.child.frozen import freeze, plain
from evolve.harness.worker.child.loader import LoadFault, Rule, compiled, describe, load, place_of
from evolve.harness.worker.child.sandbox import OUTGOING
from evolve.rules import Block, Call, Declaration, Force, Note, Pass, PastStep, Probe, Rewrite, Tool, View

T = TypeVar("T")
_DECODER = json.JSONDecoder()
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False)
Json = dict[str, Any]
MAX_OUTCOME_BYTES = 64 * 1024
RETRY_S = 0.05
READ_BYTES = 64 * 1024
STOPPING = ("block", "rewrite", "probe", "force")
"""Outcomes that need the host before the next rule can be asked."""

PASSED = ("pass", '{"kind": "pass"}')
"""What most rules say most of the time."""


class TooLong(BaseException):
    """Processor time of a rule is used up. No `Exception`, so that a rule's own `except Exception` lets it through."""


class Nonsense(Exception):
    """A rule returned something that is no outcome."""


def arm() -> None:
    """Let a limit on processor time raise, here and in all forks."""
    signal.signal(signal.SIGPROF, _raise_too_long)


def serve(channel: Iterable[bytes]) -> None:
    """Answer the host until it hangs up. The parent called `arm`."""
    messages = (_DECODER.decode(line.decode()) for line in channel)
    for first in messages:
        if "codes" not in first:
            _compile_and_tell(first["sources"], first["load_cpu_s"])
            continue
        rules = _load_and_tell(first["codes"], first["sources"], first["load_cpu_s"])
        episode = Episode(first["opening"], rules, first["call_cpu_s"])
        for later in messages:
            write(episode.answer(later))


def _compile_and_tell(sources: dict[str, str], cpu_s: float) -> None:
    try:
        send({"codes": within(cpu_s, compiled, sources)})
    except LoadFault as fault:
        send({"load_error": str(fault)})
    except TooLong:
        send({"load_error": f"compiling took more than {cpu_s} s of processor time"})


def _load_and_tell(codes: dict[str, str], sources: dict[str, str], cpu_s: float) -> dict[str, Rule]:
    rules: dict[str, Rule] = {}
    try:
        rules = within(cpu_s, load, codes, sources)
        send({"declarations": [_described(rule.declaration) for rule in rules.values()]})
    except LoadFault as fault:
        send({"load_error": str(fault)})
    except TooLong as error:
        send({"load_error": f"{place_of(error)}: loading took more than {cpu_s} s of processor time"})
    return rules


def _described(rule: Declaration) -> Json:
    return {"id": rule.id, "layer": rule.layer, "strength": rule.strength, "evidence": rule.evidence}


def send(message: Json) -> None:
    """Write one line to the host."""
    write(json.dumps(message).encode())


def write(line: bytes) -> None:
    """Write all of a line to the host."""
    rest = memoryview(line + b"\n")
    while rest:
        rest = rest[os.write(OUTGOING, rest) :]


def within(cpu_s: float, function: Callable[..., T], *args: Any) -> T:
    """Call a function under a limit on processor time, which does not depend on how busy the machine is.

    Raises:
        TooLong: the limit was reached.
    """
    signal.setitimer(signal.ITIMER_PROF, cpu_s, RETRY_S)
    try:
        return function(*args)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


class Episode:
    """What this worker knows of the episode, and the rules it asks."""

    def __init__(self, opening: Json, rules: dict[str, Rule], call_cpu_s: float) -> None:
        self._task = opening["task"]
        self._tools = tuple(Tool(**{**tool, "parameters": freeze(tool["parameters"])}) for tool in opening["tools"])
        self._step_limit = opening["step_limit"]
        self._rules = rules
        self._call_cpu_s = call_cpu_s
        self._history: tuple[PastStep, ...] = ()

    def answer(self, message: Json) -> bytes:
        """Ask the listed rules in order until one needs the host, and return the line that says what they said."""
        self._history += tuple(map(_past_step, message["steps"]))
        view = self._view(message)
        said = []
        for unit in message["units"]:
            kind, encoded = self._ask(self._rules[unit], view)
            said.append(encoded)
            if kind in STOPPING:
                break
            view = dataclasses.replace(view, probes=()) if view.probes else view
        return f'{{"id":{message["id"]},"outcomes":[{",".join(said)}]}}'.encode()

    def _view(self, message: Json) -> View:
        return View(
            task=self._task,
            tools=self._tools,
            history=self._history,
            text=message["text"],
            proposed=_call(message["proposed"]),
            admissible=_words(message["admissible"]),
            steps_left=message["steps_left"],
            step_limit=self._step_limit,
            probes=tuple(message["probes"]),
        )

    def _ask(self, rule: Rule, view: View) -> tuple[str, str]:
        try:
            return within(self._call_cpu_s, _outcome_of, rule, view)
        except TooLong as error:
            return _fault("timeout", f"{place_of(error)}: more than {self._call_cpu_s} s of processor time")
        except Nonsense as error:
            return _fault("nonsense", str(error))
        except (Exception, SystemExit, KeyboardInterrupt, GeneratorExit) as error:
            return _fault("raised", _safely_described(error))


def _outcome_of(rule: Rule, view: View) -> tuple[str, str]:
    returned = rule.function(view, rule.memory)
    if isinstance(returned, Pass):
        return PASSED
    outcome = encode(returned)
    try:
        text = _ENCODER.encode(outcome)
        size = len(text.encode())
    except ValueError as error:  # a lone surrogate is one
        raise Nonsense(f"returned text that is not valid Unicode ({error.__class__.__name__})") from None
    if size > MAX_OUTCOME_BYTES:
        raise Nonsense(f"returned {size} bytes, the most is {MAX_OUTCOME_BYTES}")
    return outcome["kind"], text


def encode(outcome: object) -> Json:
    """Return the JSON form of what a rule returned.

    Raises:
        Nonsense: it is no outcome, or its fields have the wrong types.
    """
    match outcome:
        case Note(text):
            return {"kind": "note", "text": _text(text)}
        case Block(message):
            return {"kind": "block", "text": _text(message)}
        case Rewrite(tool, arguments) | Probe(tool, arguments) | Force(tool, arguments):
            return {"kind": type(outcome).__name__.lower(), "tool": _text(tool), "arguments": _arguments(arguments)}
    raise Nonsense(f"returned {type(outcome).__name__}; a rule returns PASS, Note, Block, Rewrite, Probe or Force")


def _text(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise Nonsense(f"an outcome's text is a string with something in it, not {type(value).__name__}")
    return value


def _arguments(value: object) -> Json:
    try:
        arguments = plain(value)
    except ValueError as error:
        raise Nonsense(f"arguments: {error}") from None
    if not isinstance(arguments, dict):
        raise Nonsense("arguments are a dict of names to JSON values")
    return arguments


def _fault(kind: str, message: str) -> tuple[str, str]:
    return "fault", json.dumps({"kind": "fault", "fault": kind, "text": message})


def _safely_described(error: BaseException) -> str:
    try:
        return within(RETRY_S, describe, error)
    except BaseException:  # its own __str__ misbehaves
        return type(error).__name__


def _past_step(step: Json) -> PastStep:
    return PastStep(
        text=step["text"],
        proposed=_call(step["proposed"]),
        executed=_call(step["executed"]),
        observation=step["observation"],
        error=step["error"],
        admissible=_words(step["admissible"]),
    )


def _call(call: Json | None) -> Call | None:
    return None if call is None else Call(call["tool"], freeze(call["arguments"]), call["raw"])


def _words(words: list[str] | None) -> tuple[str, ...] | None:
    return None if words is None else tuple(words)


def _raise_too_long(number: int, frame: object) -> NoReturn:
    raise TooLong
