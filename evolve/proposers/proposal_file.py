"""What comes back from a proposer's workspace: whether files changed, and proposal.json. Follows no link."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

import orjson
from pydantic import ValidationError

from evolve.errors import ProposerError
from evolve.harness.check import PROPOSAL_FILE
from evolve.records import Proposal

_LARGEST_PROPOSAL = 64 * 1024


def fingerprint(workspace: Path) -> str:
    """Return one SHA-256 over paths and contents of the regular files, proposal.json and hidden names left out."""
    seal = hashlib.sha256()
    for folder, folders, files in os.walk(workspace):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name != "__pycache__")
        for name in sorted(files):
            path = Path(folder, name)
            relative = path.relative_to(workspace).as_posix()
            if relative != PROPOSAL_FILE and not name.startswith(".") and stat.S_ISREG(path.lstat().st_mode):
                seal.update(f"{len(relative)}:{relative}:".encode())
                seal.update(hashlib.sha256(path.read_bytes()).digest())
    return seal.hexdigest()


def has_proposal(workspace: Path) -> bool:
    """Tell whether something called proposal.json is there."""
    return os.path.lexists(workspace / PROPOSAL_FILE)


def read_proposal(workspace: Path) -> Proposal:
    """Read and validate proposal.json.

    Raises:
        ProposerError: it is missing, no small regular file, no JSON, or not a proposal; says what is wrong.
    """
    try:
        return Proposal.model_validate(orjson.loads(_read_regular(workspace / PROPOSAL_FILE)))
    except orjson.JSONDecodeError as error:
        raise ProposerError(f"{PROPOSAL_FILE} is not valid JSON: {error}") from error
    except ValidationError as error:
        raise ProposerError(f"{PROPOSAL_FILE} is not a proposal: {what_is_wrong(error)}") from error


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
        if not stat.S_ISREG(status.st_mode) or status.st_size > _LARGEST_PROPOSAL:
            raise ProposerError(f"{path.name} must be a regular file of at most {_LARGEST_PROPOSAL} bytes")
        return file.read(_LARGEST_PROPOSAL)
