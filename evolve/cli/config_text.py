"""Every value of a configuration with its source, without secrets."""

from __future__ import annotations

import json
import re

from evolve.cli.place import Place
from evolve.config import flat_values
from evolve.records import Json
from evolve.secrets import scrub, secret_values

_PASSWORD = re.compile(r"(://[^/@:]*):[^/@]*@")


def config_rows(place: Place) -> dict[str, Json]:
    """Return value, text and source by dotted key."""
    secrets = secret_values(place.environ)
    rows = {}
    for key, value in sorted(flat_values(place.config).items()):
        clean = scrub(value, secrets)
        if isinstance(clean, str):
            clean = _PASSWORD.sub(r"\1:***@", clean)
        text = clean if isinstance(clean, str) else json.dumps(clean, ensure_ascii=False)
        rows[key] = {"value": clean, "text": text, "source": _source(place, key)}
    return rows


def _source(place: Place, key: str) -> str:
    """Return where a value comes from: its own source, or that of a table around it."""
    parts = key.split(".")
    names = [".".join(parts[:end]) for end in range(len(parts), 0, -1)]
    return next((place.sources[name] for name in names if name in place.sources), "default")
