"""Turns what a worker wrote into typed replies. Untrusted: unknown keys, wrong types, ids and sizes are refused."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal, get_args

import orjson

from evolve.harness.worker.channel import Broken
from evolve.records import Json, Layer, Strength

ReplyKind = Literal["pass", "note", "block", "rewrite", "probe", "force", "fault"]
FaultKind = Literal["raised", "timeout", "nonsense", "over_strength", "crashed"]

UNIT_ID = re.compile(r"[a-z][a-z0-9]*(\.[a-z0-9-]+)+")
MAX_RULES, MAX_EVIDENCE, MAX_TEXT, MAX_DEPTH = 100, 2_000, 64 * 1024, 16
KEYS: dict[str, dict[str, type]] = {
    "pass": {},
    "note": {"text": str},
    "block": {"text": str},
    "rewrite": {"tool": str, "arguments": dict},
    "probe": {"tool": str, "arguments": dict},
    "force": {"tool": str, "arguments": dict},
    "fault": {"fault": str, "text": str},
}
MAY_RETURN = {
    Layer.ACTION: frozenset({"pass", "block", "rewrite", "probe", "fault"}),
    Layer.TRAJECTORY: frozenset({"pass", "note", "probe", "force", "fault"}),
}
RANKS = {strength.value: strength.rank for strength in Strength}
"""How far a kind of outcome goes: outcomes that change something bear the name of the strength they need."""

HARNESSES_KNOWN = 16
"""Of how many harnesses the declarations are kept, read: each episode's worker declares the same as the one before."""

ANSWER = {"id", "outcomes"}
PASS = {"kind": "pass"}
FAULTS = frozenset(get_args(FaultKind))


@dataclass(frozen=True, slots=True)
class RuleDeclaration:
    """A rule of the harness that this worker loaded; `order` counts from 0 over both files."""

    id: str
    layer: Layer
    strength: Strength
    evidence: str
    order: int


@dataclass(frozen=True, slots=True)
class RuleReply:
    """What one unit said. `text` is that of the note, block or fault; `fault` is set for kind fault only."""

    unit: str
    kind: ReplyKind
    text: str = ""
    tool: str = ""
    arguments: Json = field(default_factory=dict)
    fault: FaultKind | None = None

    @classmethod
    def of_fault(cls, unit: str, fault: FaultKind, text: str) -> RuleReply:
        """Return the reply of a unit that misbehaved."""
        return cls(unit, "fault", text=text, fault=fault)


def codes_of(line: bytes, filenames: Collection[str]) -> dict[str, str] | str:
    """Return what the worker compiled the files to, to be given to others unread, or why they do not compile.

    It may be nothing: then it cannot be passed on.

    Raises:
        Broken: the line is neither.
    """
    message = _object(line)
    if (fault := _load_error(message)) is not None:
        return fault
    codes = message.get("codes")
    if set(message) != {"codes"} or not isinstance(codes, dict) or codes.keys() not in (set(filenames), set()):
        raise Broken("nonsense", "the worker's code is not that of the files")
    if not all(isinstance(code, str) for code in codes.values()):
        raise Broken("nonsense", "the worker's code is no text")
    return codes


@lru_cache(maxsize=HARNESSES_KNOWN)
def declarations_of(line: bytes) -> tuple[RuleDeclaration, ...] | str:
    """Return what the worker declares, or the words in which the harness does not load.

    Raises:
        Broken: the line is neither.
    """
    message = _object(line)
    if (fault := _load_error(message)) is not None:
        return fault
    listed = message.get("declarations")
    if set(message) != {"declarations"} or not isinstance(listed, list) or len(listed) > MAX_RULES:
        raise Broken("nonsense", "the worker's list of rules is malformed")
    try:
        declared = tuple(_declaration(order, raw) for order, raw in enumerate(listed))
    except ValueError as error:
        return str(error)
    twice = [unit for unit, count in Counter(rule.id for rule in declared).items() if count > 1]
    return f"the id {twice[0]!r} is used twice" if twice else declared


def replies_of(
    line: bytes, number: int, units: Sequence[str], declared: Mapping[str, RuleDeclaration]
) -> tuple[RuleReply, ...]:
    """Return the answers to call `number` in order: one for each of the first units asked.

    Raises:
        Broken: the line is no answer to that call.
    """
    message = _object(line)
    outcomes = message.get("outcomes")
    if message.keys() != ANSWER or message["id"] != number or not isinstance(outcomes, list):
        raise Broken("nonsense", "the worker's answer is not to the question asked")
    if not 0 < len(outcomes) <= len(units):
        raise Broken("nonsense", f"{len(outcomes)} outcomes of {len(units)} rules")
    return tuple(_reply(raw, declared[unit]) for unit, raw in zip(units, outcomes, strict=False))


def _load_error(message: Json) -> str | None:
    if set(message) == {"load_error"} and isinstance(message["load_error"], str):
        return message["load_error"][:MAX_EVIDENCE]
    return None


def _object(line: bytes) -> Json:
    try:
        message = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise Broken("nonsense", f"the worker wrote no JSON: {error}") from None
    if not isinstance(message, dict):
        raise Broken("nonsense", "the worker wrote no JSON object")
    return message


def _declaration(order: int, raw: Any) -> RuleDeclaration:
    if not isinstance(raw, dict) or set(raw) != {"id", "layer", "strength", "evidence"}:
        raise ValueError("a rule's declaration is malformed")
    unit, evidence = raw["id"], raw["evidence"]
    if not isinstance(unit, str) or not UNIT_ID.fullmatch(unit):
        raise ValueError(f"the rule id {str(unit)[:80]!r} is not of the form layer.name")
    if not isinstance(evidence, str) or len(evidence) > MAX_EVIDENCE:
        raise ValueError(f"{unit}: evidence is a text of at most {MAX_EVIDENCE} characters")
    if raw["layer"] not in list(MAY_RETURN):
        raise ValueError(f"{unit}: layer {str(raw['layer'])[:80]!r} has no rules")
    return RuleDeclaration(unit, Layer(raw["layer"]), Strength(raw["strength"]), evidence, order)


def _reply(raw: Any, rule: RuleDeclaration) -> RuleReply:
    if raw == PASS:
        return _passed(rule.id)
    kind = raw.get("kind") if isinstance(raw, dict) else None
    expected = KEYS.get(kind) if isinstance(kind, str) else None
    if expected is None or raw.keys() != expected.keys() | {"kind"}:
        return RuleReply.of_fault(rule.id, "nonsense", "the outcome has unknown or missing parts")
    if any(type(raw[key]) is not kind_of for key, kind_of in expected.items()) or not _is_modest(raw):
        return RuleReply.of_fault(rule.id, "nonsense", "the outcome has parts of a wrong type or size")
    if kind not in MAY_RETURN[rule.layer]:
        return RuleReply.of_fault(rule.id, "nonsense", f"a rule of the {rule.layer} layer may not return {kind}")
    if kind == "fault" and raw["fault"] not in FAULTS:
        return RuleReply.of_fault(rule.id, "nonsense", "an unknown kind of fault")
    if RANKS.get(kind, -1) > RANKS[rule.strength]:
        return RuleReply.of_fault(rule.id, "over_strength", f"returned {kind}, declared {rule.strength}")
    return RuleReply(unit=rule.id, **raw)


@lru_cache(maxsize=MAX_RULES)
def _passed(unit: str) -> RuleReply:
    """Return what most rules say most of the time."""
    return RuleReply(unit, "pass")


def _is_modest(value: Any, depth: int = 0) -> bool:
    if isinstance(value, str):
        return len(value) <= MAX_TEXT
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, dict):
        return depth < MAX_DEPTH + 2 and all(_is_modest(item, depth + 1) for item in value.values())
    if isinstance(value, list):
        return depth < MAX_DEPTH + 2 and all(_is_modest(item, depth + 1) for item in value)
    return True
