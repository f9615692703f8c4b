"""What comes back from a proposer's workspace: whether files changed, and proposal.json. Follows no link."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

import orjson
from pydantic import ValidationError

from evolve.classify.excerpt import visible
from evolve.errors import ProposerError, RepositoryError
from evolve.harness.check import PROPOSAL_FILE
from evolve.records import Proposal, digest_of
from evolve.repository import collect

_LARGEST_PROPOSAL = 64 * 1024
_LONGEST_HYPOTHESIS = 600
_LONGEST_NAME = 200
_MOST_NAMES = 1000


def fingerprint(workspace: Path) -> str:
    """Return one SHA-256 over what would be read back of it, proposal.json and hidden names left out.

    Raises:
        ProposerError: the folder was removed or replaced.
    """
    try:
        found = collect(workspace)
    except RepositoryError as error:
        raise ProposerError(str(error)) from error
    contents = {path: hashlib.sha256(content).hexdigest() for path, content in found.files.items()}
    seen = {**contents, **dict(found.refused)}
    return digest_of({path: what for path, what in seen.items() if path != PROPOSAL_FILE and not _is_hidden(path)})


def _is_hidden(path: str) -> bool:
    return any(part.startswith(".") for part in path.split("/")) and path != "."


def has_proposal(workspace: Path) -> bool:
    """Tell whether something called proposal.json is there."""
    return os.path.lexists(workspace / PROPOSAL_FILE)


def read_proposal(workspace: Path) -> Proposal:
    """Read and validate proposal.json.

    Raises:
        ProposerError: it is missing, no small regular file, no JSON, or not a proposal; says what is wrong.
    """
    try:
        return tidied(Proposal.model_validate(orjson.loads(_read_regular(workspace / PROPOSAL_FILE))))
    except orjson.JSONDecodeError as error:
        raise ProposerError(f"{PROPOSAL_FILE} is not valid JSON: {error}") from error
    except ValidationError as error:
        raise ProposerError(f"{PROPOSAL_FILE} is not a proposal: {what_is_wrong(error)}") from error


def tidied(proposal: Proposal) -> Proposal:
    """Return a proposal in whose words nothing acts: no line, control or invisible character, no endless name.

    They go into a commit message, the ledger, terminals and the next proposer's brief.
    """
    return proposal.model_copy(
        update={
            "hypothesis": visible(" ".join(proposal.hypothesis.split()), _LONGEST_HYPOTHESIS),
            "pattern_id": visible(proposal.pattern_id, _LONGEST_NAME),
            "predicts_fixed": _names(proposal.predicts_fixed),
            "at_risk": _names(proposal.at_risk),
        }
    )


def _names(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(visible(name, _LONGEST_NAME) for name in names[:_MOST_NAMES])


def what_is_wrong(error: ValidationError) -> str:
    """Return each fault of a record as `field: message`, on one line."""
    return "; ".join(f"{'.'.join(map(str, e['loc'])) or 'top level'}: {e['msg']}" for e in error.errors())


def _read_regular(path: Path) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)  # a link or a pipe must not hold us up
    except FileNotFoundError as error:
        raise ProposerError(f"{path.name} is missing although harness files were edited") from error
    except OSError as error:
        raise ProposerError(f"{path.name} cannot be read: {error.strerror}") from error
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > _LARGEST_PROPOSAL or status.st_nlink > 1:
            raise ProposerError(f"{path.name} must be a regular file of its own, of at most {_LARGEST_PROPOSAL} bytes")
        return file.read(_LARGEST_PROPOSAL)
