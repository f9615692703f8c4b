"""Rewrites what docs/ takes from the code: command line, configuration, harness files, rule API, attacks.

    python docs/generate.py

A page keeps its prose; what stands between `<!-- generated: NAME -->` and `<!-- /generated -->` is replaced. A test
holds the pages equal to what this makes.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
import tomllib
import types
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from evolve import rules
from evolve.cli.app import command
from evolve.config import Config
from evolve.environments.conformance import CHECKS
from evolve.environments.template import template_files
from evolve.harness.artifact import Limits
from evolve.rules import ALLOWED

DOCS = Path(__file__).parent
TESTS = DOCS.parent / "tests"
WIDTH = 100
BLOCK = re.compile(r"(<!-- generated: (\w+) -->\n).*?(<!-- /generated -->)", re.DOTALL)
TYPES = {bool: "`true` or `false`", int: "whole number", float: "number", str: "text", Path: "path"}
BOUNDS = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}


def expected(page: Path) -> str:
    """Return a page with its generated parts as the code has them now."""
    return BLOCK.sub(lambda found: f"{found[1]}\n{PARTS[found[2]]()}\n\n{found[3]}", page.read_text("utf-8"))


def pages() -> list[Path]:
    """Return the pages that have generated parts."""
    return [page for page in sorted(DOCS.rglob("*.md")) if BLOCK.search(page.read_text("utf-8"))]


def command_line() -> str:
    """Return the help of every command."""
    return "\n\n".join(f"## `{name}`\n\n```text\n{text}\n```" for name, text in _helps(command(), "evolve", None))


def _helps(one: Any, name: str, parent: Any) -> Iterator[tuple[str, str]]:
    context = one.make_context(name, [], parent=parent, resilient_parsing=True, terminal_width=WIDTH)
    yield context.command_path, "\n".join(line.rstrip() for line in one.get_help(context).splitlines())
    for below, inner in getattr(one, "commands", {}).items():
        yield from _helps(inner, below, context)


def configuration() -> str:
    """Return every key of evolve.toml, a table for each section."""
    plain = {name: field for name, field in Config.model_fields.items() if _section(field) is None}
    parts = [_table(plain, "", Config())]
    for name, field in Config.model_fields.items():
        section = _section(field)
        if section is not None:
            claim = _unset(inspect.cleandoc(section.__doc__ or "").partition("\n")[0])
            default = getattr(Config(), name)
            parts.append(f"### `[{name}]`\n\n{claim}\n\n{_table(section.model_fields, f'{name}.', default)}")
    return "\n\n".join(parts)


def environment_example() -> str:
    """Return the files of the environment that the page on environments shows: those of `evolve env new`."""
    languages = {".py": "python", ".toml": "toml"}
    return "\n\n".join(
        f"`{path}`\n\n```{languages[Path(path).suffix]}\n{text.rstrip()}\n```"
        for path, text in template_files("coat_check").items()
    )


def conformance_checks() -> str:
    """Return what every environment has to keep, in the order in which it is checked."""
    return "\n".join(f"- {name}" for name in CHECKS)


def harness_limits() -> str:
    """Return the keys of [limits] in harness.toml."""
    return _table(Limits.model_fields, "", Limits())


def rule_imports() -> str:
    """Return the modules that rule code may import."""
    return ", ".join(f"`{name}`" for name in ALLOWED)


def attacks() -> str:
    """Return every attack of the red team with its tier, how it came out, and what shows it."""
    head = ["| case | by | attack | defence | tier | verdict | tests |", "| --- | --- | --- | --- | --- | --- | --- |"]
    rows = tomllib.loads((TESTS / "redteam" / "cases.toml").read_text("utf-8"))["case"]
    return "\n".join([*head, *map(_attack, rows)])


def _attack(row: Mapping[str, Any]) -> str:
    verdict = f"{row['verdict']}: {row['note']}" if row.get("note") else row["verdict"]
    marked = [
        file for file in sorted((TESTS / "redteam").glob("test_*.py")) if f'case("{row["id"]}")' in file.read_text()
    ]
    named = [*(f"redteam/{file.name}" for file in marked), *(name.split("::")[0] for name in row.get("elsewhere", ()))]
    tests = ", ".join(f"`{name}`" for name in dict.fromkeys(named))
    cells = (row["id"], row["party"], row["attack"], row["defence"], row["tier"], verdict, tests)
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def rule_api() -> str:
    """Return what evolve/rules.py offers, in the order of the file."""
    ladder = " < ".join(f"`{name}`" for name in rules.STRENGTHS)
    return "\n\n".join([f"Version {rules.API_VERSION}. Strengths: {ladder}.", *map(_api_entry, _api_names())])


def _api_names() -> list[str]:
    named = (name for name in vars(rules) if not name.startswith("_"))
    found = {name: getattr(rules, name) for name in named}
    own = [
        name
        for name, value in found.items()
        if inspect.isclass(value) or inspect.isfunction(value)
        if value.__module__ == rules.__name__
    ]
    return sorted(own, key=lambda name: inspect.getsourcelines(found[name])[1])


def _api_entry(name: str) -> str:
    value = getattr(rules, name)
    claim = inspect.cleandoc(value.__doc__ or "")
    if inspect.isfunction(value):
        return f"#### `@{name}{_signature(value).partition(' ->')[0]}`\n\n{claim}"
    lines = [f"- `{field.name}: {field.type}`{_default(field)}" for field in dataclasses.fields(value)]
    methods = [(n, m) for n, m in vars(value).items() if inspect.isfunction(m) and not n.startswith("_")]
    lines += [f"- `{n}{_signature(m)}`: {inspect.getdoc(m)}" for n, m in methods]
    return "\n\n".join(part for part in (f"#### `{name}`", claim, "\n".join(lines)) if part)


def _signature(function: Callable[..., Any]) -> str:
    return str(inspect.signature(function)).replace("'", "").replace("(self, ", "(")


def _default(field: dataclasses.Field[Any]) -> str:
    return "" if field.default is dataclasses.MISSING else f", by default `{field.default!r}`"


def _section(field: FieldInfo) -> type[BaseModel] | None:
    return _table_of(field.annotation)


def _table_of(kind: Any) -> type[BaseModel] | None:
    return kind if inspect.isclass(kind) and issubclass(kind, BaseModel) else None


def _table(fields: Mapping[str, FieldInfo], prefix: str, defaults: BaseModel | None) -> str:
    rows = [row for name, field in fields.items() for row in _rows(name, field, prefix, defaults)]
    return "\n".join(["| key | type | default | meaning |", "| --- | --- | --- | --- |", *rows])


def _rows(name: str, field: FieldInfo, prefix: str, defaults: BaseModel | None) -> Iterator[str]:
    """Yield the row of a key; a table of fixed form that is not set by default has its own keys below it."""
    key = f"{prefix}{name}"
    default = "required" if defaults is None else _shown(getattr(defaults, name))
    inner = next(filter(None, map(_table_of, get_args(field.annotation))), None)
    meaning = _unset(_meaning(key, field))
    if key == "proposer.model":
        yield _row(key, "table", default, f"{meaning}; its keys are those of `[model]`")
        return
    yield _row(key, "table" if inner else _type(field), default, meaning)
    if inner is not None:
        for below, inner_field in inner.model_fields.items():
            yield from _rows(below, inner_field, f"{key}.", None)


def _meaning(key: str, field: FieldInfo) -> str:
    if not field.description:
        raise ValueError(f"{key}: its field says nothing of itself; give it a description")
    return field.description


def _row(*cells: str) -> str:
    key, *rest = (cell.replace("|", "\\|") for cell in cells)
    return f"| `{key}` | {' | '.join(rest)} |"


def _type(field: FieldInfo) -> str:
    limits = [
        f"{sign} {getattr(bound, name):g}"
        for bound in field.metadata
        for name, sign in BOUNDS.items()
        if hasattr(bound, name)
    ]
    return ", ".join([_named(field.annotation), *limits])


def _named(kind: Any) -> str:
    origin, inside = get_origin(kind), get_args(kind)
    if origin is Literal:
        return ", ".join(f"`{_toml(value)}`" for value in inside)
    if origin in (Union, types.UnionType):
        return ", ".join(_named(part) for part in inside if part is not type(None))
    if origin is tuple:
        return f"list of {_named(inside[0])}s"
    if origin is dict:
        return "table"
    if inspect.isclass(kind) and issubclass(kind, Enum):
        return ", ".join(f"`{_toml(member.value)}`" for member in kind)
    return TYPES[kind]


def _unset(text: str) -> str:
    """Say it as a TOML file has it, where nothing is None."""
    return text.replace("None:", "not set:")


def _shown(value: Any) -> str:
    return "not set" if value is None else f"`{_toml(value)}`"


def _toml(value: Any) -> str:
    if isinstance(value, tuple):
        return json.dumps(list(value), ensure_ascii=False)
    return json.dumps(value.value if isinstance(value, Enum) else value, ensure_ascii=False)


PARTS: Mapping[str, Callable[[], str]] = {
    "attacks": attacks,
    "command_line": command_line,
    "configuration": configuration,
    "conformance_checks": conformance_checks,
    "environment_example": environment_example,
    "harness_limits": harness_limits,
    "rule_imports": rule_imports,
    "rule_api": rule_api,
}

if __name__ == "__main__":
    for page in pages():
        page.write_text(expected(page), "utf-8")
