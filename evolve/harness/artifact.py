"""Reads a harness folder into one validated, immutable Harness. Executes nothing that it reads."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from evolve.errors import HarnessError
from evolve.harness.digest import harness_digest
from evolve.records import Layer

SCHEMA_VERSION = 1
UNIT_ID = re.compile(r"^[a-z][a-z0-9]*(\.[a-z0-9-]+)+$")
RULE_FILES: Mapping[str, Layer] = {"action.py": Layer.ACTION, "trajectory.py": Layer.TRAJECTORY}
SKILL_WORDS = 120
NOTE_CHARACTERS = 400

M = TypeVar("M", bound=BaseModel)


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Limits(_Table):
    """Numeric limits of a harness."""

    block_cap: int = Field(default=3, ge=0, le=20, description="blocks per episode and unit; then let through")
    skills_top_k: int = Field(default=1, ge=0, le=5, description="skills given to one task at most; 0 gives none")
    skills_min_score: float = Field(default=0.25, ge=0.0, description="BM25 score below which no skill is given")


class Layers(_Table):
    """Which layers are on."""

    contract: bool = True
    skill: bool = True
    action: bool = True
    trajectory: bool = True


class Settings(_Table):
    """harness.toml."""

    schema_version: Literal[1]
    environment: str
    layers: Layers = Layers()
    units: dict[str, bool] = {}
    limits: Limits = Limits()


class SystemNote(_Table):
    """A contract note for the system prompt."""

    id: str
    text: str = Field(min_length=1, max_length=NOTE_CHARACTERS)
    evidence: str


class ToolNote(SystemNote):
    """A contract note for the description of one tool."""

    tool: str


class Contract(_Table):
    """contract.toml."""

    system: tuple[SystemNote, ...] = ()
    tool: tuple[ToolNote, ...] = ()


class SkillHead(_Table):
    """The front matter of a skill."""

    id: str
    title: str
    when: str
    evidence: str


@dataclass(frozen=True)
class Skill:
    """A procedure that is put into the prompt where the task text retrieves it."""

    head: SkillHead
    body: str


@dataclass(frozen=True)
class Harness:
    """One version of a harness folder, in memory. `digest` covers every file of it."""

    files: Mapping[str, bytes]
    digest: str
    settings: Settings
    contract: Contract
    skills: tuple[Skill, ...]
    rule_sources: Mapping[str, str]

    def text_units(self) -> Iterator[tuple[str, Layer]]:
        """Yield the unit ids of the data layers; rules are declared by code and known once a worker loads them."""
        for note in (*self.contract.system, *self.contract.tool):
            yield note.id, Layer.CONTRACT
        for skill in self.skills:
            yield skill.head.id, Layer.SKILL

    def is_on(self, unit: str, layer: Layer, off: frozenset[str] = frozenset()) -> bool:
        """Tell whether a unit is active: its layer, its own switch, and the run's `off` list of units and layers."""
        if unit in off or layer.value in off:
            return False
        return bool(getattr(self.settings.layers, layer.value)) and self.settings.units.get(unit, True)


def read_folder(folder: Path) -> dict[str, bytes]:
    """Read the files of a harness folder, keyed by path relative to it; byte code and hidden files are left out."""
    if not folder.is_dir():
        raise HarnessError(f"{folder} is not a folder; a harness is a folder with a harness.toml")
    paths = (p for p in sorted(folder.rglob("*")) if p.is_file() and not p.is_symlink())
    relative = ((p.relative_to(folder), p) for p in paths)
    return {
        r.as_posix(): p.read_bytes()
        for r, p in relative
        if "__pycache__" not in r.parts and not any(part.startswith(".") for part in r.parts)
    }


def read_harness(files: Mapping[str, bytes]) -> Harness:
    """Parse and check the files of a harness.

    Raises:
        HarnessError: a file is missing, unknown, does not parse, or a unit id is wrong or used twice.
    """
    _refuse_unknown_files(files)
    if "harness.toml" not in files:
        raise HarnessError(
            "harness.toml is missing; the smallest harness is that file with schema_version and environment"
        )
    harness = Harness(
        files=dict(files),
        digest=harness_digest(files),
        settings=_parse_toml("harness.toml", files, Settings),
        contract=_parse_toml("contract.toml", files, Contract) if "contract.toml" in files else Contract(),
        skills=tuple(_parse_skill(path, files) for path in sorted(files) if path.startswith("skills/")),
        rule_sources={name: _text(name, files) for name in RULE_FILES if files.get(name, b"").strip()},
    )
    _check_unit_ids(harness)
    return harness


def _refuse_unknown_files(files: Mapping[str, bytes]) -> None:
    known = {"harness.toml", "contract.toml", "README.md", *RULE_FILES}
    for path in sorted(files):
        is_skill = PurePosixPath(path).match("skills/*.md")
        if path not in known and not is_skill:
            raise HarnessError(
                f"{path} does not belong in a harness folder (expected: {', '.join(sorted(known))}, skills/*.md)"
            )


def _text(path: str, files: Mapping[str, bytes]) -> str:
    try:
        return files[path].decode("utf-8")
    except UnicodeDecodeError as error:
        raise HarnessError(f"{path} is not UTF-8 (byte {error.start})") from error


def _parse_toml(path: str, files: Mapping[str, bytes], model: type[M]) -> M:
    return _validate(path, _load_toml(path, _text(path, files)), model)


def _load_toml(path: str, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise HarnessError(f"{path} is not valid TOML: {error}") from error
    except RecursionError:
        raise HarnessError(f"{path} is nested too deeply to be read") from None


def _validate(path: str, table: dict[str, Any], model: type[M]) -> M:
    try:
        return model.model_validate(table)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise HarnessError(f"{path}: {where or 'top level'}: {first['msg']}") from error


def _parse_skill(path: str, files: Mapping[str, bytes]) -> Skill:
    match = re.match(r"\A\+\+\+\n(.*?)\n\+\+\+\n(.*)\Z", _text(path, files).replace("\r\n", "\n"), re.DOTALL)
    if match is None:
        raise HarnessError(f"{path} must begin with TOML front matter between two lines of +++")
    body = match.group(2).strip()
    if not 0 < len(body.split()) <= SKILL_WORDS:
        raise HarnessError(f"{path}: the body has {len(body.split())} words; 1 to {SKILL_WORDS} are allowed")
    return Skill(_validate(path, _load_toml(path, match.group(1)), SkillHead), body)


def _check_unit_ids(harness: Harness) -> None:
    seen: set[str] = set()
    for unit, layer in harness.text_units():
        check_unit_id(unit, layer)
        if unit in seen:
            raise HarnessError(f"unit id {unit!r} is used twice")
        seen.add(unit)


def is_switch(name: str) -> bool:
    """Tell whether a name can be in a run's `off` list: it is a layer, or has the form of a unit's id."""
    return name.partition(".")[0] in set(Layer) and ("." not in name or UNIT_ID.fullmatch(name) is not None)


def check_unit_id(unit: str, layer: Layer) -> None:
    """Check that a unit id is well formed and begins with its layer.

    Raises:
        HarnessError: it is not.
    """
    if not UNIT_ID.match(unit) or not unit.startswith(f"{layer.value}."):
        raise HarnessError(f"unit id {unit!r} must look like {layer.value}.some-name (lower case, digits, hyphens)")
