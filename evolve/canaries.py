"""Canaries: random strings that lie in sealed places only, so that one seen elsewhere shows that something came out.

A canary is known also in another case, cut up by punctuation, reversed, in rot13, hexadecimal and Base64, and as its
MD5, SHA-1 or SHA-256. One that was encrypted, compressed or told in other words is not seen.
"""

from __future__ import annotations

import base64
import codecs
import hashlib
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from evolve.errors import CanaryFound
from evolve.records import digest_of

VARIABLE = "HELDOUT_ANSWERS"
"""Bait: this variable of the process of evolve holds a canary. No child is given it while variables are scrubbed."""

SHORTEST = 12
"""Letters and digits of a canary; shorter ones stand in honest texts by chance."""

_BLOCK = 4 * 1024 * 1024
_OVERLAP = 4 * 1024  # a canary across two blocks is in one of them with this much of the block before
_LOWER = bytes(range(256)).lower()
_DROPPED = bytes(byte for byte in range(256) if not bytes([byte]).isalnum())


class Canaries:
    """The canaries of a run, and a look for them in whatever passes a boundary.

    Args:
        planted: the canary by the place where it lies; an empty text means that none lies there.

    Raises:
        ValueError: a canary is too short to be told from honest text.
    """

    def __init__(self, planted: Mapping[str, str]) -> None:
        self._places: dict[bytes, str] = {}
        for place, canary in planted.items():
            if canary and len(_bare(canary.encode())) < SHORTEST:
                raise ValueError(f"the canary of {place} has fewer than {SHORTEST} letters and digits")
            self._places.update(dict.fromkeys(_forms(canary), place) if canary else {})

    def find(self, content: bytes) -> str | None:
        """Return the place of a canary that is in `content`, or None."""
        if not self._places:
            return None
        bare = _bare(content)
        return next((place for form, place in self._places.items() if form in bare), None)

    def refuse(self, content: str | bytes, seen_in: str) -> None:
        """Do nothing where `content` holds no canary.

        Raises:
            CanaryFound: it holds one; the message says where it lies and where it was seen, and not what it is.
        """
        found = self.find(content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content)
        if found is not None:
            raise CanaryFound(_told(found, seen_in))

    def refuse_file(self, path: Path, seen_in: str) -> None:
        """Do the same for a file of any size."""
        with path.open("rb") as stream:
            before = b""
            while block := stream.read(_BLOCK):
                self.refuse(before + block, seen_in)
                before = block[-_OVERLAP:]


def run_canaries(environment: str, secret: str) -> dict[str, str]:
    """Return what is planted for a run, by place.

    Args:
        environment: the canary in the held-out data and gold of the environment.
        secret: the canary of the workspace, which lies in its ledger.
    """
    return {
        "the held-out data or gold": environment,
        "the ledger": secret,
        "the variables of the process of evolve": variable_canary(secret),
    }


def variable_canary(secret: str) -> str:
    """Return the canary of the variables: another one than the ledger's, so that a hit tells which came out."""
    return f"answers-{digest_of([secret, VARIABLE])[:40]}" if secret else ""


@contextmanager
def planted_variables(environ: Mapping[str, str], secret: str) -> Iterator[dict[str, str]]:
    """Plant the canary among the variables of this process while the block lasts; give `environ` with it.

    A child that is started without a scrubbed environment of its own inherits it, and so does one that is handed all
    of `environ`.
    """
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = variable_canary(secret)
    try:
        yield {**environ, VARIABLE: variable_canary(secret)}
    finally:
        if before is None:
            os.environ.pop(VARIABLE, None)
        else:
            os.environ[VARIABLE] = before


def _told(place: str, seen_in: str) -> str:
    return (
        f"sealed content came out: the canary that lies in {place} was seen in {seen_in}. Nothing more is measured. "
        "Find out how it got there before anything of this run is believed"
    )


def _bare(content: bytes) -> bytes:
    """Return letters and digits alone, in lower case. A line end written as an escape goes too."""
    return content.replace(b"\\n", b"").translate(_LOWER, _DROPPED)


def _forms(canary: str) -> set[bytes]:
    """Return how a canary may be written, as `_bare` leaves it."""
    plain = canary.encode()
    written = {plain, plain[::-1], plain.hex().encode(), codecs.encode(canary, "rot13").encode()}
    written |= {_inner_base64(plain, shift) for shift in range(3)}
    hashes = (hashlib.new(name, plain, usedforsecurity=False) for name in ("md5", "sha1", "sha256"))
    written |= {made.hexdigest().encode() for made in hashes}
    return {_bare(form) for form in written}


def _inner_base64(plain: bytes, shift: int) -> bytes:
    """Return the Base64 characters that depend on `plain` alone where `shift` bytes (mod 3) stand before it."""
    encoded = base64.b64encode(b"\0" * shift + plain)
    return encoded[-(-shift * 4 // 3) : (shift + len(plain)) * 8 // 6]
