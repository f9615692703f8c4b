"""Loads, merges, validates and digests a configuration. Every value knows where it came from.

From strong to weak: flag, `--set key.path=value`, EVOLVE_* environment, `--config` file, evolve.toml, default. What a
run that goes on was told before counts where it was told: just below --set and flags, or in the file's place.
"""

from __future__ import annotations

import difflib
import inspect
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import to_jsonable_python

from evolve.dotted import flatten
from evolve.errors import ConfigError
from evolve.gate.budget import Policy
from evolve.models.settings import ModelSettings
from evolve.records import Strength, digest_of

ENVIRONMENT_PREFIX = "EVOLVE_"
FILE_NAME = "evolve.toml"
BEFORE = "what the run was told before"


class Section(BaseModel):
    """Base of configuration sections: immutable; unknown keys, infinite numbers and NaN are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class RolloutSettings(Section):
    """How episodes are produced."""

    concurrency: int = Field(default=8, ge=1, le=1000, description="episodes at once")
    episode_timeout_s: float = Field(
        default=900.0, gt=0, description="seconds for one episode; more is an error, not a failure"
    )
    retries: int = Field(default=2, ge=0, le=10, description="further attempts after an infrastructure error")
    error_share: float = Field(default=0.2, gt=0, le=1, description="share of errored episodes that stops the run")


class HarnessSettings(Section):
    """What the run allows a harness to do; the proposer cannot edit this."""

    cap: Strength = Field(default=Strength.REWRITE, description="strongest outcome that a unit may have")
    off: tuple[str, ...] = Field(default=(), description="units or layers switched off, for ablation")
    isolation: Literal["rlimits", "seatbelt", "seccomp", "seccomp+landlock"] = Field(
        default="seccomp", description="weakest acceptable tier of the rule worker"
    )
    call_timeout_s: float = Field(default=1.0, gt=0, description="seconds for one call of a rule")


class ProposerSettings(Section):
    """What writes candidates."""

    kind: Literal["mechanic", "openai", "command", "handoff"] = Field(
        default="mechanic", description="see [proposers](proposers.md)"
    )
    agent: str = Field(default="", description="row of the agents table, for kind command: codex, claude, opencode")
    agents_file: str = Field(default="", description="a TOML file of further agent rows")
    sandbox: Literal["auto", "required", "off"] = Field(
        default="auto", description="whether coding agents are shut in; without one the run says UNPROTECTED"
    )
    timeout_s: float = Field(default=1800.0, gt=0, description="seconds for one candidate")
    model: ModelSettings | None = Field(default=None, description="the model of kind openai")
    max_turns: int = Field(default=40, ge=1, description="turns of kind openai")


class GateSettings(Section):
    """How a candidate is tested."""

    policy: Policy = Field(
        default=Policy.STANDARD,
        description="false-accept rate of the whole run: `strict` 2 %, `standard` 10 %; `explore` commits nothing",
    )
    max_trials: int = Field(
        default=24, ge=1, le=64, description="trials per task and arm at most; 1 for a greedy model"
    )
    screen_tasks: int = Field(default=8, ge=1, description="targeted failing tasks in the screen")
    screen_sentries: int = Field(default=4, ge=0, description="passing tasks in the screen")


class EvaluationSettings(Section):
    """How a frozen harness is evaluated on held-out tasks."""

    trials: int = Field(default=3, ge=1, le=64, description="trials per task and arm; 1 for a greedy model")


class BudgetSettings(Section):
    """What a run may spend. None: no limit."""

    usd: float | None = Field(default=None, ge=0, description="US dollars of a run; needs `model.price`")
    tokens: int | None = Field(default=None, ge=0, description="tokens of a run, prompt and completion together")
    time_limit_s: float | None = Field(default=None, gt=0, description="seconds of one `evolve run`")


class LedgerSettings(Section):
    """Where the ledger lives: a file of the workspace, or a database by URL."""

    url: str = Field(
        default="", description="empty: .evolve/ledger.sqlite in the workspace; else e.g. postgresql+psycopg://…"
    )


class Config(Section):
    """All of it."""

    schema_version: Literal[1] = Field(default=1, description="version of this form")
    environment: str = Field(default="household", description="name of the environment to evolve for")
    environments: dict[str, dict[str, Any]] = Field(default={}, description="options of each environment, by name")
    iterations: int = Field(default=5, ge=1, le=1000, description="candidates that a run tries at most")
    model: ModelSettings = ModelSettings(kind="openai")
    rollout: RolloutSettings = RolloutSettings()
    harness: HarnessSettings = HarnessSettings()
    proposer: ProposerSettings = ProposerSettings()
    gate: GateSettings = GateSettings()
    evaluation: EvaluationSettings = EvaluationSettings()
    budget: BudgetSettings = BudgetSettings()
    ledger: LedgerSettings = LedgerSettings()

    @property
    def digest(self) -> str:
        """SHA-256 of all values."""
        return digest_of(self.model_dump(mode="json"))


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

    def as_json(self) -> dict[str, Any]:
        """Return it as the ledger keeps it."""
        return asdict(self)


@dataclass(frozen=True)
class Loaded:
    """A validated configuration, the source of each value that is not a default, and what was told, before and now."""

    config: Config
    sources: Mapping[str, str]
    told: Told


@dataclass(frozen=True)
class Layered:
    """One source of values: dotted key to value."""

    name: str
    values: Mapping[str, Any]


def load_config(
    workspace: Path | None,
    *,
    file: Path | None = None,
    environ: Mapping[str, str] | None = None,
    assignments: tuple[str, ...] = (),
    flags: Mapping[str, Any] | None = None,
    before: Told | None = None,
    only: Collection[str] | None = None,
) -> Loaded:
    """Merge all sources and validate.

    Args:
        workspace: folder that may hold an evolve.toml; None reads none.
        file: a further TOML file that outranks it.
        environ: environment variables; EVOLVE_MODEL__ID sets model.id.
        assignments: `key.path=value` texts of --set; values are TOML, bare words are strings.
            From any source an empty text is "not set" where a key may be that.
        flags: dotted keys given as command line flags.
        before: what a run that goes on was told before; what is told now outranks it.
        only: sections to read where the others may not be valid yet.

    Raises:
        ConfigError: names the key, its source and what is wrong.
    """
    before = before or Told()
    own = _of_file(workspace / FILE_NAME) if workspace is not None and (workspace / FILE_NAME).is_file() else None
    told_file = Layered(BEFORE, before.file) if file is None else _of_file(file)
    renewed = told_file.values if file is not None else {}
    told_line = [
        Layered(BEFORE, {key: value for key, value in before.line.items() if key not in renewed}),
        Layered("--set", _flat_assignments(assignments)),
        Layered("flag", {key: value for key, value in (flags or {}).items() if value is not None}),
    ]
    merged: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for layer in [*([own] if own else []), told_file, *_from_environ(environ or {}), *told_line]:
        for key, value in layer.values.items():
            if only is None or _section(key) in only:
                _place(merged, key, value, layer.name)
                sources[key] = layer.name
    line = {key: value for layer in told_line for key, value in layer.values.items()}
    told = Told(*({key: told[key] for key in told if _section(key) != "ledger"} for told in (told_file.values, line)))
    return Loaded(_validate(merged, sources), sources, told)


def flat_values(config: Config) -> dict[str, Any]:
    """Return every value by dotted key, for `config show`."""
    return flatten(config.model_dump(mode="json"))


def _section(key: str) -> str:
    return key.partition(".")[0]


def _of_file(path: Path) -> Layered:
    if not path.is_file():
        raise ConfigError(f"--config {path}: no such file")
    return Layered(str(path), _as_json(flatten(_read_toml(path))))


def _flat_assignments(assignments: Iterable[str]) -> dict[str, Any]:
    """Return the values of --set by dotted key; a table counts key by key, as one in a file does."""
    flat: dict[str, Any] = {}
    for text in assignments:
        key, value = _parse_assignment(text)
        flat |= flatten({key: value})
    return _as_json(flat)


def _as_json(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values as the ledger keeps them: a date is its text, now and in a run that is resumed."""
    return {key: to_jsonable_python(value) for key, value in values.items()}


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not valid TOML: {error}") from error


def _from_environ(environ: Mapping[str, str]) -> Iterator[Layered]:
    """Yield a source for each variable, named as the variable is."""
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


def _place(tree: dict[str, Any], key: str, value: Any, source: str) -> None:
    *parents, last = key.split(".")
    for parent in parents:
        tree = tree.setdefault(parent, {})
        if not isinstance(tree, dict):
            raise ConfigError(f"{key} (from {source}): {parent} is a value, not a table")
    tree[last] = value


def _with_unset(tree: Mapping[str, Any], table: type[BaseModel]) -> dict[str, Any]:
    """Return the tree with None in place of each empty text whose key may be not set; TOML has no null."""
    found = dict(tree)
    for name, info in table.model_fields.items():
        value, kinds = found.get(name), get_args(info.annotation)
        inner = _table_in(info.annotation)
        if value == "" and NoneType in kinds:
            found[name] = None
        elif inner is not None and isinstance(value, Mapping):
            found[name] = _with_unset(value, inner)
    return found


def _table_in(annotation: Any) -> type[BaseModel] | None:
    """Return the table that a field holds, also where it may be not set; None where it holds a value."""
    kinds = get_args(annotation) or (annotation,)
    return next((kind for kind in kinds if inspect.isclass(kind) and issubclass(kind, BaseModel)), None)


def _validate(tree: dict[str, Any], sources: Mapping[str, str]) -> Config:
    try:
        return Config.model_validate(_with_unset(tree, Config))
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        told = _no_such_key(key) if first["type"] == "extra_forbidden" else first["msg"]
        raise ConfigError(f"{key} (from {_source_of(key, sources)}): {told}") from error


def _source_of(key: str, sources: Mapping[str, str]) -> str:
    """Return who set a key: by itself, in a table below it, or with the whole of a table around it."""
    related = (s for k, s in sources.items() if k.startswith(f"{key}.") or key.startswith(f"{k}."))
    return sources.get(key) or next(related, "default")


def _no_such_key(key: str) -> str:
    """Say so, and which known key may be meant."""
    near = difflib.get_close_matches(key, list(_known_keys(Config)), n=1)
    return f"no such key; the nearest is {near[0]}" if near else "no such key; docs/configuration.md lists all"


def _known_keys(table: type[BaseModel], prefix: str = "") -> Iterator[str]:
    for name, info in table.model_fields.items():
        inner = _table_in(info.annotation)
        yield from [f"{prefix}{name}"] if inner is None else _known_keys(inner, f"{prefix}{name}.")
