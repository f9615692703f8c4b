"""Reads the workspace's .env: lines of NAME=value. Variables that are set already are stronger."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from evolve.errors import ConfigError

_LINE = re.compile(r"^(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*)$")
_QUOTED = re.compile(r"""^(["'])(.*)\1\s*(?:#.*)?$""")


def with_dotenv(environ: Mapping[str, str], file: Path) -> dict[str, str]:
    """Return `environ` with the variables of a .env file that it lacks; an empty value in the file sets nothing.

    Raises:
        ConfigError: a line is no assignment; names the line, never its content.
    """
    if not file.is_file():
        return dict(environ)
    return {**dict(_assignments(file)), **environ}


def _assignments(file: Path) -> Iterator[tuple[str, str]]:
    try:
        lines = file.read_text("utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file} is not UTF-8 text") from error
    for number, line in enumerate((line.strip() for line in lines), 1):
        if not line or line.startswith("#"):
            continue
        match = _LINE.match(line)
        if match is None:
            raise ConfigError(f"{file}, line {number}: write NAME=value")
        if value := _unquoted(match[2]):
            yield match[1], value


def _unquoted(written: str) -> str:
    quoted = _QUOTED.match(written)
    return quoted[2] if quoted else re.split(r"\s+#", written, maxsplit=1)[0].strip()
