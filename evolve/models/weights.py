"""The digest of a weights file, kept in the user's cache folder so that a gigabyte is read once."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

import orjson


def weights_sha256(path: Path, *, environ: Mapping[str, str] = os.environ) -> str:
    """Return the SHA-256 of a file; the kept one while path, size and time of change are the same."""
    status = path.stat()
    identity = orjson.dumps([str(path.resolve()), status.st_size, status.st_mtime_ns])
    kept = cache_folder(environ) / "weights" / hashlib.sha256(identity).hexdigest()
    try:
        return kept.read_text(encoding="ascii")
    except OSError:
        digest = _sha256(path)
    _keep(kept, digest)
    return digest


def cache_folder(environ: Mapping[str, str]) -> Path:
    """Return the folder for what can be computed again."""
    return Path(environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "evolve"


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _keep(kept: Path, digest: str) -> None:
    """Write the digest in one move. A cache folder that cannot be written costs time, nothing else."""
    written = kept.with_suffix(f".{os.getpid()}")
    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
        written.write_text(digest, encoding="ascii")
        written.replace(kept)
    except OSError:
        with contextlib.suppress(OSError):
            written.unlink()
