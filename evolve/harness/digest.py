"""The identity of a harness: one SHA-256 over its files. Reads nothing; the caller brings the bytes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping


def harness_digest(files: Mapping[str, bytes]) -> str:
    """Return the SHA-256 (hex) over the files, sorted by path.

    Path and content are each preceded by their length, so that no two different folders read the same.

    Args:
        files: path relative to the harness folder, with forward slashes, to content.
    """
    seal = hashlib.sha256()
    for path in sorted(files):
        for part in (path.encode(), files[path]):
            seal.update(len(part).to_bytes(8, "big"))
            seal.update(part)
    return seal.hexdigest()
