"""The rows of configuration that say how each coding-agent CLI is run headless. Starts nothing."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
from pydantic import Field, ValidationError, field_validator

from evolve.errors import ConfigError
from evolve.named_files import read_text
from evolve.proposers.proposal_file import what_is_wrong
from evolve.records import Record, Usage
from evolve.resources import resource

SHIPPED_ROWS = "prompts/agents.toml"
AGENTS_FILE = "proposer.agents_file"
_HOST = re.compile(r"(\*\.)?[A-Za-z0-9._-]+(:\d{1,5})?|\[[0-9A-Fa-f:.]+\](:\d{1,5})?")
_MOST_TOKENS, _MOST_USD = 10**10, 10**5  # in one event


def is_host(text: str) -> bool:
    """Say whether a text names hosts as a row does: name, name:port or *.name, an address of version 6 in brackets."""
    return _HOST.fullmatch(text) is not None


def home_of(environ: Mapping[str, str]) -> Path:
    """Return the user's home folder."""
    return Path(environ.get("HOME") or "~").expanduser()


def place_of(written: str, home: Path) -> Path:
    """Return where a row's `~/...` leads, or another path of it seen from the home folder."""
    return Path(os.path.normpath(home / written.removeprefix("~/")))


class UsageRow(Record):
    """How tokens and money are read from an agent's JSON events. Paths are dotted; several are added up."""

    event: dict[str, str] = Field(description="path to value: the events that carry usage")
    mode: str = Field(pattern="^(sum|last)$", description="add up all such events, or the last one holds the total")
    prompt_tokens: tuple[str, ...] = ()
    cached_tokens: tuple[str, ...] = ()
    completion_tokens: tuple[str, ...] = ()
    cost_usd: tuple[str, ...] = Field(default=(), description="empty where the agent does not tell")


class FailureRow(Record):
    """Where an agent's JSON events say why it failed."""

    event: dict[str, str | bool] = Field(description="path to value: the events that tell of a failure")
    words: str = Field(description="dotted path to its own words in them")


class AgentRow(Record):
    """One coding agent. `argv` may hold {prompt}, {prompt_file}, {workspace} and {evidence}."""

    name: str
    title: str
    program: str
    install: str = Field(description="the command that installs it")
    argv: tuple[str, ...]
    model_argv: tuple[str, ...] = Field(default=(), description="goes before argv[1:] where a model is set: {model}")
    keys: tuple[str, ...] = Field(default=(), description="variables with credentials; handed on, and cut from output")
    variables: tuple[str, ...] = Field(default=(), description="further variables handed on")
    set_variables: dict[str, str] = Field(default={}, description="variables set for the agent")
    hosts: tuple[str, ...] = Field(
        default=(), description="whom it may reach out of a sandbox: name, name:port, *.name, or * for everybody"
    )
    copied: tuple[str, ...] = Field(
        default=(),
        description="its configuration and login (~/...), copied into the home that it gets in a sandbox; base "
        "addresses in them are reached too",
    )
    readable: tuple[str, ...] = Field(
        default=(), description="what else it reads in a sandbox, such as its own modules"
    )
    shut_in_argv: tuple[str, ...] = Field(
        default=(), description="goes behind argv[0] inside a sandbox, such as what switches the agent's own one off"
    )
    open_argv: tuple[str, ...] = Field(default=(), description="goes behind argv[0] where there is no sandbox")
    failure: tuple[FailureRow, ...] = Field(
        default=(),
        description="how its own words for a failure are found; the last ones count, until it goes well again",
    )
    usage: UsageRow | None = None

    @field_validator("hosts")
    @classmethod
    def _hosts_are_names(cls, hosts: tuple[str, ...]) -> tuple[str, ...]:
        wrong = [host for host in hosts if host != "*" and not is_host(host)]
        if wrong:
            raise ValueError(f"{wrong[0]!r} is no name, name:port or *.name")
        return hosts

    def command(
        self, program: str, *, model: str | None, places: Mapping[str, str], is_shut_in: bool = False
    ) -> list[str]:
        """Return the argument list. Only whole placeholders are replaced, so a prompt may hold any braces."""
        chosen = [part.replace("{model}", model) for part in self.model_argv] if model else []
        chosen += self.shut_in_argv if is_shut_in else self.open_argv
        first, *rest = self.argv
        return [program, *(places.get(part, part) for part in (first, *chosen, *rest))]


def read_rows(text: str, source: str) -> dict[str, AgentRow]:
    """Parse a table of agents.

    Raises:
        ConfigError: the table does not parse or a row is not valid; names the row and `source`.
    """
    try:
        table = tomllib.loads(text).get("agents", {})
        return {name: AgentRow.model_validate({**row, "name": name}) for name, row in table.items()}
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{source} is not valid TOML: {error}") from error
    except ValidationError as error:
        raise ConfigError(f"{source} has a row that is not valid: {what_is_wrong(error)}") from error
    except (AttributeError, TypeError) as error:
        raise ConfigError(f"{source} has no tables [agents.NAME], one for each agent") from error


def shipped_rows() -> dict[str, AgentRow]:
    """Return the rows that come with the package, by name."""
    path = resource(SHIPPED_ROWS)
    return read_rows(path.read_text("utf-8"), path.name)


def known_rows(more: str = "") -> dict[str, AgentRow]:
    """Return the shipped rows and those of the file that `proposer.agents_file` names, which outrank them.

    Raises:
        ConfigError: that file does not read.
    """
    if not more:
        return shipped_rows()
    path = Path(more).expanduser()
    return shipped_rows() | read_rows(read_text(AGENTS_FILE, path), f"{AGENTS_FILE} ({path})")


def find_row(name: str, more: str = "") -> AgentRow:
    """Return the row of an agent, as `known_rows` has it.

    Raises:
        ConfigError: there is none of that name, or the file does not read.
    """
    rows = known_rows(more)
    if name not in rows:
        called = f"proposer.agent is {name!r}, and no coding agent is called so" if name else "proposer.agent is empty"
        raise ConfigError(f"{called}; there are: {', '.join(sorted(rows))}")
    return rows[name]


class EventReader:
    """Collects what a row wants to know from the lines that an agent prints; what is no JSON event is passed over.

    `usage` is what it used so far; `failure` its last own words for a failure, empty where it had none or where an
    event with usage came after it: then it went on.
    """

    def __init__(self, row: AgentRow) -> None:
        self._row = row
        self.usage = Usage()
        self.failure = ""

    def read(self, line: bytes) -> None:
        """Take one line of output into account."""
        if not line.lstrip().startswith(b"{"):
            return
        try:
            event = orjson.loads(line)
        except orjson.JSONDecodeError:
            return
        told = [words for row in self._row.failure if isinstance(words := _words(event, row), str) and words]
        usage = self._row.usage
        if usage and _is(event, usage.event):
            found = _usage(event, usage)
            self.usage = found if usage.mode == "last" else self.usage + found
            self.failure = ""
        self.failure = told[0] if told else self.failure


def _is(event: Any, wanted: Mapping[str, str | bool]) -> bool:
    return all(_at(event, path) == value for path, value in wanted.items())


def _words(event: Any, row: FailureRow) -> Any:
    return _at(event, row.words) if _is(event, row.event) else None


def _usage(event: Any, row: UsageRow) -> Usage:
    costs = [cost for path in row.cost_usd if _is_amount(cost := _at(event, path), _MOST_USD)]
    return Usage(
        prompt_tokens=_total(event, row.prompt_tokens),
        cached_tokens=_total(event, row.cached_tokens),
        completion_tokens=_total(event, row.completion_tokens),
        cost_usd=float(sum(costs)) if costs else None,
    )


def _total(event: Any, paths: tuple[str, ...]) -> int:
    return sum(
        count for path in paths if isinstance(count := _at(event, path), int) and _is_amount(count, _MOST_TOKENS)
    )


def _is_amount(told: object, most: float) -> bool:
    """Say whether a number can be believed: an agent's own account must not give budget back or break a sum."""
    return isinstance(told, (int, float)) and not isinstance(told, bool) and 0 <= told <= most


def _at(event: Any, path: str) -> Any:
    for key in path.split("."):
        event = event.get(key) if isinstance(event, dict) else None
    return event
