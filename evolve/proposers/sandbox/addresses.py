"""Finds in an agent's own settings where its model is, so that the gateway leads there."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from evolve.proposers.agents import is_host

_BASE_ADDRESS = re.compile(r"(?:.*[_-])?base[_-]?url", re.IGNORECASE)
_OF_TOOLS = "mcp"
"""What the names of tables begin with that set up an agent's tools: what they lead to is no model."""
_LONGEST = 2**20


def hosts_of(settings: Iterable[str]) -> list[str]:
    """Return whom base addresses lead to, each with its port.

    Args:
        settings: texts: an address (http or https), or JSON or TOML with some under a name like `base_url`.
    """
    return [host for text in settings for address in _addresses(text) if (host := _host_of(address))]


def text_of(file: Path) -> str:
    """Return what a file of settings says; nothing where it does not read, or is longer than settings are."""
    with suppress(OSError):
        if file.is_file() and file.stat().st_size <= _LONGEST:
            return file.read_text("utf-8", errors="replace")
    return ""


def _addresses(text: str) -> Iterator[str]:
    if text.startswith(("http://", "https://")):
        yield text
    else:
        yield from _base_addresses(_read(text))


def _read(text: str) -> Any:
    """Return the JSON or TOML that a text is; None where it is neither."""
    for parse in (json.loads, tomllib.loads):
        with suppress(ValueError, RecursionError):
            return parse(text)
    return None


def _base_addresses(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _base_addresses(item)
    if not isinstance(value, dict):
        return
    for name, item in value.items():
        if isinstance(item, str) and _BASE_ADDRESS.fullmatch(name):
            yield item
        elif not name.lower().startswith(_OF_TOOLS):
            yield from _base_addresses(item)


def _host_of(address: str) -> str:
    """Return `host:port`, a host of version 6 in brackets; nothing for what is no address."""
    with suppress(ValueError):  # a port that is no number, or half a bracket
        parts = urlsplit(address)
        host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
        found = f"{host}:{parts.port or (443 if parts.scheme == 'https' else 80)}"
        if parts.scheme in ("http", "https") and parts.hostname and "*" not in found and is_host(found):
            return found
    return ""
