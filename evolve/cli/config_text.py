"""Every value of a configuration with its source, without secrets."""

from __future__ import annotations

import json
import re

from evolve.cli.place import Place
from evolve.config import Config, flat_values
from evolve.records import Json
from evolve.secrets import scrub, secret_values

_PASSWORD = re.compile(r"(://[^/@:]*):[^/@]*@")


def config_rows(place: Place) -> dict[str, Json]:
    """Return value, text and source by dotted key."""
    secrets = secret_values(place.environ)
    defaults = flat_values(Config())
    rows = {}
    for key, value in sorted(flat_values(place.config).items()):
        clean = scrub(value, secrets)
        if isinstance(clean, str):
            clean = _PASSWORD.sub(r"\1:***@", clean)
        text = clean if isinstance(clean, str) else json.dumps(clean, ensure_ascii=False)
        rows[key] = {"value": clean, "text": text, "source": _source(place, key, is_default=defaults.get(key) == value)}
    return rows


def _source(place: Place, key: str, *, is_default: bool) -> str:
    """Return where a value comes from: its own source, or that of a table around it which was set as a whole."""
    if key in place.sources or is_default:
        return place.sources.get(key, "default")
    parts = key.split(".")
    tables = [".".join(parts[:end]) for end in range(len(parts) - 1, 0, -1)]
    return next((place.sources[name] for name in tables if name in place.sources), "default")
