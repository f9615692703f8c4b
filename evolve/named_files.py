"""Files that a configuration names. One that does not read is refused with the key that names it, and its path."""

from __future__ import annotations

from pathlib import Path

from evolve.disk import in_words
from evolve.errors import ConfigError


def require_file(key: str, path: Path) -> Path:
    """Return a path at which a file is.

    Raises:
        ConfigError: there is none, or something else.
    """
    if path.is_dir():
        raise ConfigError(f"{key} names {path}, which is a folder; name a file")
    if not path.is_file():
        what = "which is no regular file" if path.exists() else "and there is no such file"
        raise ConfigError(f"{key} names {path}, {what}")
    return path


def read_bytes(key: str, path: Path) -> bytes:
    """Return what the file holds.

    Raises:
        ConfigError: it cannot be read.
    """
    try:
        return require_file(key, path).read_bytes()
    except OSError as error:
        raise ConfigError(f"{key} names {path}, which cannot be read: {in_words(error)}") from error


def read_text(key: str, path: Path) -> str:
    """Return the text of the file.

    Raises:
        ConfigError: it cannot be read, or is not UTF-8.
    """
    try:
        return read_bytes(key, path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{key} names {path}, which is not UTF-8 (byte {error.start})") from error
