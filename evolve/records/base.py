"""What all records are made of: their base, digests, and the closed sets of words."""

from __future__ import annotations

import hashlib
from enum import StrEnum
from typing import Any, Literal

import orjson
from pydantic import BaseModel, ConfigDict

Json = dict[str, Any]


def digest_of(value: Any) -> str:
    """Return the SHA-256 (hex) of a JSON value in canonical form: sorted keys, no spaces, UTF-8."""
    return hashlib.sha256(orjson.dumps(value, option=orjson.OPT_SORT_KEYS)).hexdigest()


class Record(BaseModel):
    """Base of all records: immutable, unknown fields refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Split(StrEnum):
    """Which tasks: `train` (proposer sees traces), `guard` (scores only), `heldout` (sealed)."""

    TRAIN = "train"
    GUARD = "guard"
    HELDOUT = "heldout"


LoopSplit = Literal[Split.TRAIN, Split.GUARD]


class Layer(StrEnum):
    """The four layers of a harness, in lifecycle order."""

    CONTRACT = "contract"
    SKILL = "skill"
    ACTION = "action"
    TRAJECTORY = "trajectory"


class Strength(StrEnum):
    """How far a unit may go, weakest first."""

    NOTE = "note"
    WARN = "warn"
    BLOCK = "block"
    REWRITE = "rewrite"
    FORCE = "force"

    @property
    def rank(self) -> int:
        """Position on the ladder, 0 for `note`."""
        return list(Strength).index(self)


class ErrorKind(StrEnum):
    """Why an environment did not do what a call asked. These are observations, never exceptions."""

    MALFORMED_CALL = "malformed_call"
    UNKNOWN_TOOL = "unknown_tool"
    INVALID_ARGS = "invalid_args"
    REJECTED = "rejected"
    NO_EFFECT = "no_effect"
    TIMEOUT = "timeout"


class FailureClass(StrEnum):
    """Why an episode failed, in the order in which the classes are tried (first match wins)."""

    ACTION = "action"
    CONTRACT = "contract"
    TRAJECTORY = "trajectory"
    REASONING = "reasoning"


class Decision(StrEnum):
    """What a gate says of a candidate."""

    ACCEPT = "accept"
    REJECT = "reject"
    CANNOT_TELL = "cannot_tell"
