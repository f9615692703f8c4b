"""Adds one unit to the text of a harness file and keeps all that is there. Pure: texts in, texts out."""

from __future__ import annotations

import ast
from collections.abc import Iterator

DOCSTRINGS = {
    "action.py": '"""Rules on a proposed call (Action Realization)."""\n',
    "trajectory.py": '"""Rules on the history (Trajectory Regulation)."""\n',
}


def with_rule(source: str, addition: str) -> str:
    """Add the functions of `addition` at the end of a rule file and its imports at the top.

    A function without a decorator that the file already defines is not added again: rules share what they carry.
    """
    present = {node.name for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)}
    new = [
        _text_of(addition, node)
        for node in ast.parse(addition).body
        if isinstance(node, ast.FunctionDef) and (node.decorator_list or node.name not in present)
    ]
    return "\n\n\n".join([_with_imports(source, addition).rstrip(), *new]) + "\n"


def with_note(source: str, table: str, fields: dict[str, str]) -> str:
    """Add an entry to an array of tables (`system` or `tool`) at the end of contract.toml."""
    lines = [f"[[{table}]]", *(f"{name} = {toml_string(value)}" for name, value in fields.items())]
    return "\n\n".join(part for part in (source.rstrip(), "\n".join(lines)) if part) + "\n"


def toml_string(text: str) -> str:
    """Return a text as a basic TOML string; characters that cannot be seen are left out."""
    shown = "".join(c for c in " ".join(text.split()) if c.isprintable())
    return '"' + shown.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _text_of(source: str, node: ast.FunctionDef) -> str:
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    return "\n".join(source.splitlines()[first - 1 : node.end_lineno])


def _with_imports(source: str, addition: str) -> str:
    """Return `source` with its imports and those of `addition` as one sorted block under the docstring."""
    tree = ast.parse(source)
    dropped = {line for node in _imports(tree) for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)}
    kept = [line for number, line in enumerate(source.splitlines(), 1) if number not in dropped]
    top = _docstring_end(tree)
    body = "\n".join(kept[top:]).strip("\n")
    parts = ["\n".join(kept[:top]).rstrip(), "\n".join(_import_lines(tree, ast.parse(addition)))]
    head = "\n\n".join(part for part in parts if part)
    return f"{head}\n\n\n{body}\n" if body else f"{head}\n"


def _docstring_end(tree: ast.Module) -> int:
    first = tree.body[0] if tree.body else None
    is_docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return (first.end_lineno or 0) if first is not None and is_docstring else 0


def _imports(tree: ast.Module) -> Iterator[ast.Import | ast.ImportFrom]:
    return (node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom))


def _import_lines(*trees: ast.Module) -> Iterator[str]:
    plain: set[str] = set()
    names: dict[str, set[str]] = {}
    for node in (node for tree in trees for node in _imports(tree)):
        spelt = {alias.name + (f" as {alias.asname}" if alias.asname else "") for alias in node.names}
        if isinstance(node, ast.Import):
            plain |= spelt
        else:
            names.setdefault(node.module or "", set()).update(spelt)
    if "__future__" in names:
        yield from (f"from __future__ import {', '.join(sorted(names.pop('__future__')))}", "")
    yield from (f"import {name}" for name in sorted(plain))
    for module in sorted(names, key=lambda name: (name.startswith("evolve."), name)):
        if module.startswith("evolve.") and (plain or len(names) > 1):
            yield ""
        yield f"from {module} import {', '.join(sorted(names[module], key=_import_order))}"


def _import_order(name: str) -> tuple[int, str]:
    """Order names as import sorters do: constants, classes, functions."""
    return (0 if name.isupper() else 1 if name[:1].isupper() else 2, name)
