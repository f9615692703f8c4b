"""Finds in an agent's own settings where its model is, so that the gateway leads there."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

_BASE_ADDRESS = re.compile(r"""base_?url["']?\s*[:=]\s*["'](https?://[^"'\s]+)""", re.IGNORECASE)
_LONGEST = 2**20


def hosts_of(settings: Iterable[str]) -> list[str]:
    """Return whom base addresses lead to, each with its port.

    Args:
        settings: texts: an address (http or https), or JSON or TOML with some under a name like `base_url`.
    """
    return [host for text in settings for address in _addresses(text) if (host := _host_of(address))]


def text_of(file: Path) -> str:
    """Return what a file of settings says; nothing where it is no file, or longer than settings are."""
    if not file.is_file() or file.stat().st_size > _LONGEST:
        return ""
    return file.read_text("utf-8", errors="replace")


def _addresses(text: str) -> Iterator[str]:
    if text.startswith(("http://", "https://")):
        yield text
    else:
        yield from _BASE_ADDRESS.findall(text)


def _host_of(address: str) -> str:
    with suppress(ValueError):  # a port that is no number
        parts = urlsplit(address)
        if parts.hostname:
            return f"{parts.hostname}:{parts.port or (443 if parts.scheme == 'https' else 80)}"
    return ""
