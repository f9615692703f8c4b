"""Where values come from: a file, the environment, the command line, and what a run was told before."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pydantic_core import to_jsonable_python

from evolve.config.sections import Config
from evolve.dotted import flatten
from evolve.errors import ConfigError
from evolve.models.settings import FILES, SHIPPED
from evolve.named_files import require_file

ENVIRONMENT_PREFIX = "EVOLVE_"
PATHS = {"proposer.agents_file", *(f"{table}.{name}" for table in ("model", "proposer.model") for name in FILES)}
"""Keys whose value names a file."""


@dataclass(frozen=True)
class Layered:
    """One source of values: dotted key to value."""

    name: str
    values: Mapping[str, Any]


@dataclass(frozen=True)
class Told:
    """What a command line says, by dotted key, as JSON: by a --config file, and by --set and flags.

    The ledger is left out: its URL may hold a password, and a run is found in it.
    """

    file: Mapping[str, Any] = field(default_factory=dict)
    line: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, kept: Any) -> Told:
        """Return what the ledger keeps; nothing where it keeps nothing.

        Raises:
            ConfigError: it keeps something else.
        """
        parts = [kept.get(name, {}) for name in ("file", "line")] if isinstance(kept, Mapping) else [kept]
        if not all(isinstance(part, Mapping) for part in parts) or not set(kept) <= {"file", "line"}:
            raise ConfigError("what the run was told is not on record as evolve writes it; start a new run")
        return cls(*parts)

    @classmethod
    def now(cls, file: Layered, line: Iterable[Layered]) -> Told:
        """Return what a run keeps of the file and the parts of the line, the weakest first."""
        parts = (file.values, {key: value for part in line for key, value in part.values.items()})
        return cls(*({key: part[key] for key in part if section_of(key) != "ledger"} for part in parts))

    def as_json(self) -> dict[str, Any]:
        """Return it as the ledger keeps it."""
        return asdict(self)


def section_of(key: str) -> str:
    """Return the first part of a dotted key."""
    return key.partition(".")[0]


def from_here(told: Layered) -> Layered:
    """Return what was told with relative paths made whole: a run may be resumed in another folder."""
    return Layered(told.name, {key: _whole(value) if key in PATHS else value for key, value in told.values.items()})


def with_whole_paths(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return a configuration's tables with relative paths made whole, as seen from the folder of this process."""
    return {
        key: with_whole_paths(value, f"{prefix}{key}.")
        if isinstance(value, Mapping)
        else (_whole(value) if f"{prefix}{key}" in PATHS else value)
        for key, value in table.items()
    }


def _whole(value: Any) -> Any:
    """Return a path from the root; one in the user's home, and the name of what comes with evolve, are as they were."""
    is_path = isinstance(value, str) and value and not value.startswith(("~", SHIPPED))
    return str(Path(value).absolute()) if is_path else value


def of_file(path: Path) -> Layered:
    """Read a TOML file.

    Raises:
        ConfigError: it is absent, a folder, or no TOML.
    """
    return Layered(str(path), _as_json(flatten(_read_toml(require_file("--config", path)))))


def of_assignments(assignments: Iterable[str]) -> Layered:
    """Read the values of --set; a table counts key by key, as one in a file does.

    Raises:
        ConfigError: one does not look like key.path=value.
    """
    flat: dict[str, Any] = {}
    for text in assignments:
        key, value = _parse_assignment(text)
        flat |= flatten({key: value})
    return Layered("--set", _as_json(flat))


def _as_json(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values as the ledger keeps them: a date is its text, now and in a run that is resumed."""
    return {key: to_jsonable_python(value) for key, value in values.items()}


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not valid TOML: {error}") from error


def of_environ(environ: Mapping[str, str]) -> Iterator[Layered]:
    """Yield a source for each variable, named as the variable is.

    Raises:
        ConfigError: one holds bytes that are no UTF-8.
    """
    for name, text in environ.items():
        key = name.removeprefix(ENVIRONMENT_PREFIX).lower().replace("__", ".")
        if name.startswith(ENVIRONMENT_PREFIX) and key.partition(".")[0] in Config.model_fields:
            if not _is_utf8(text):
                raise ConfigError(f"the variable {name} holds bytes that are no UTF-8; set it again, or unset it")
            yield Layered(name, {key: _parse_value(text)})


def _is_utf8(text: str) -> bool:
    """Return whether a text of the command line or a variable was UTF-8; other bytes come as lone surrogates."""
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def _parse_assignment(text: str) -> tuple[str, Any]:
    if not _is_utf8(text):
        raise ConfigError(f"--set {text.encode('utf-8', 'replace').decode()} holds bytes that are no UTF-8")
    key, sign, value = text.partition("=")
    if not sign or not key.strip():
        raise ConfigError(f"--set {text!r} must look like key.path=value")
    return key.strip(), _parse_value(value.strip())


def _parse_value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
