"""Adds one unit to the text of a harness file and keeps all that is there. Pure: texts in, texts out."""

from __future__ import annotations

import ast
from collections.abc import Iterator

DOCSTRINGS = {
    "action.py": '"""Rules on a proposed call (Action Realization)."""\n',
    "trajectory.py": '"""Rules on the history (Trajectory Regulation)."""\n',
}


def with_rule(source: str, addition: str) -> str:
    """Add the rules of `addition` at the end of a rule file, with the functions and imports that they need.

    A function that the file already defines is not added again: rules share what they carry.
    """
    present = {node.name for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)}
    new = [node for node in _needed(ast.parse(addition)) if node.decorator_list or node.name not in present]
    texts = [_text_of(addition, node) for node in new]
    used = {name for node in new for name in _names_in(node)}
    return "\n\n\n".join([_with_imports(source, addition, used).rstrip(), *texts]) + "\n"


def with_note(source: str, table: str, fields: dict[str, str]) -> str:
    """Add an entry to an array of tables (`system` or `tool`) at the end of contract.toml."""
    lines = [f"[[{table}]]", *(f"{name} = {toml_string(value)}" for name, value in fields.items())]
    return "\n\n".join(part for part in (source.rstrip(), "\n".join(lines)) if part) + "\n"


def toml_string(text: str) -> str:
    """Return a text as a basic TOML string; characters that cannot be seen are left out."""
    shown = "".join(c for c in " ".join(text.split()) if c.isprintable())
    return '"' + shown.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _needed(tree: ast.Module) -> list[ast.FunctionDef]:
    """Return the decorated functions and those that they call, directly or through others, in file order."""
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    wanted = [name for name, node in functions.items() if node.decorator_list]
    for name in wanted:
        wanted += [called for called in _names_in(functions[name]) if called in functions and called not in wanted]
    return [node for name, node in functions.items() if name in wanted]


def _names_in(node: ast.AST) -> list[str]:
    return sorted({inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)})


def _text_of(source: str, node: ast.FunctionDef) -> str:
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    return "\n".join(source.splitlines()[first - 1 : node.end_lineno])


def _with_imports(source: str, addition: str, used: set[str]) -> str:
    """Return `source` with its imports and the used ones of `addition` as one sorted block under the docstring."""
    tree = ast.parse(source)
    dropped = {line for node in _imports(tree) for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)}
    kept = [line for number, line in enumerate(source.splitlines(), 1) if number not in dropped]
    top = _docstring_end(tree)
    body = "\n".join(kept[top:]).strip("\n")
    parts = [
        "\n".join(kept[:top]).rstrip(),
        "\n".join(_import_lines(_imported(tree) | _imported(ast.parse(addition), used))),
    ]
    head = "\n\n".join(part for part in parts if part)
    return f"{head}\n\n\n{body}\n" if body else f"{head}\n"


def _docstring_end(tree: ast.Module) -> int:
    first = tree.body[0] if tree.body else None
    is_docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return (first.end_lineno or 0) if first is not None and is_docstring else 0


def _imports(tree: ast.Module) -> Iterator[ast.Import | ast.ImportFrom]:
    return (node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom))


def _imported(tree: ast.Module, used: set[str] | None = None) -> set[tuple[str, str]]:
    """Return (module, name) of what is imported, name empty for a whole module; `used` leaves out other names."""
    found: set[tuple[str, str]] = set()
    for node in _imports(tree):
        for alias in node.names:
            spelt = alias.name + (f" as {alias.asname}" if alias.asname else "")
            if used is None or (alias.asname or alias.name) in used:
                found.add((spelt, "") if isinstance(node, ast.Import) else (node.module or "", spelt))
    return found


def _import_lines(imported: set[tuple[str, str]]) -> Iterator[str]:
    """Yield import lines in the order of import sorters: future, whole modules, standard library, the rule API."""
    by_module: dict[str, list[str]] = {}
    for module, name in sorted(imported, key=lambda pair: _import_order(pair[1])):
        if name:
            by_module.setdefault(module, []).append(name)
    lines = [(module, f"import {module}") for module, name in sorted(imported) if not name]
    lines += [(module, f"from {module} import {', '.join(by_module[module])}") for module in sorted(by_module)]
    groups: list[list[str]] = [[], [], []]
    for module, line in lines:
        groups[0 if module == "__future__" else 2 if module.startswith("evolve.") else 1].append(line)
    yield "\n\n".join("\n".join(group) for group in groups if group)


def _import_order(name: str) -> tuple[int, str]:
    """Order names as import sorters do: constants, classes, functions."""
    return (0 if name.isupper() else 1 if name[:1].isupper() else 2, name)
