"""What a patch added to a harness, as pieces of readable text with file and line. Pure: nothing is imported or run.

Python is read as code, so that a string which is put together from constants is seen whole and an
unchanged string is not seen again. Everything else is read by lines.
"""

from __future__ import annotations

import ast
import io
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

FragmentKind = Literal["text", "comment", "string", "compared", "glued", "name", "number", "table", "unreadable"]


@dataclass(frozen=True, slots=True)
class Fragment:
    """A piece of added text.

    `text` is prose of a data file; `string` a constant of code, `compared` one that code compares or
    tests for membership; `glued` the strings of one container run together; `name` an identifier;
    `table` the large numbers of one container, separated by blanks; `unreadable` stands for a whole file
    whose expressions nest too deeply to be looked into.
    """

    kind: FragmentKind
    file: str
    line: int
    text: str


def added_fragments(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> tuple[Fragment, ...]:
    """List what is in `after` and was not in `before`, in order of file and line."""
    added: list[Fragment] = []
    for file in sorted(after):
        if after[file] == before.get(file):
            continue
        old = Counter((f.kind, f.text) for f in _fragments(file, before.get(file, b"")))
        for fragment in _fragments(file, after[file]):
            if old[fragment.kind, fragment.text] > 0:
                old[fragment.kind, fragment.text] -= 1
            else:
                added.append(fragment)
        added.append(Fragment("text", file, 1, file))
    return tuple(_joined(added))


def _fragments(file: str, content: bytes) -> list[Fragment]:
    text = content.decode("utf-8", errors="replace")
    if file.endswith(".py"):
        try:
            return [*_comments(file, text), *_Reader(file).read(ast.parse(text))]
        except RecursionError:
            return [Fragment("unreadable", file, 1, "expressions nested too deeply to be read")]
        except (SyntaxError, ValueError, tokenize.TokenError):
            pass  # code that does not parse is refused elsewhere; here its lines are still read
    lines = [Fragment("text", file, n, line.strip()) for n, line in enumerate(text.splitlines(), 1) if line.strip()]
    return lines + (_escaped_strings(file, text) if file.endswith(".toml") else [])


def _joined(fragments: list[Fragment]) -> Iterator[Fragment]:
    """Join prose on consecutive lines, so that a sentence is seen across a line break."""
    held: Fragment | None = None
    last_line = 0
    for fragment in fragments:
        follows = held and (held.kind, held.file, last_line + 1) == (fragment.kind, fragment.file, fragment.line)
        if held and follows and fragment.kind in ("text", "comment"):
            held = Fragment(held.kind, held.file, held.line, f"{held.text}\n{fragment.text}")
        else:
            if held:
                yield held
            held = fragment
        last_line = fragment.line
    if held:
        yield held


def _comments(file: str, text: str) -> Iterator[Fragment]:
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield Fragment("comment", file, token.start[0], token.string.lstrip("#").strip())


def _escaped_strings(file: str, text: str) -> list[Fragment]:
    """Return TOML strings whose value does not stand in the file as it is, so that escapes hide nothing."""
    try:
        values = list(_strings(tomllib.loads(text)))
    except tomllib.TOMLDecodeError:
        return []
    except RecursionError:
        return [Fragment("unreadable", file, 1, "tables or lists nested too deeply to be read")]
    return [Fragment("text", file, 1, value) for value in values if value not in text]


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _strings(key)
            yield from _strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)


class _Reader(ast.NodeVisitor):
    """Collects the fragments of one module."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.found: list[Fragment] = []
        self.known: dict[str, str] = {}

    def read(self, tree: ast.Module) -> list[Fragment]:
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                folded = _fold(node.value, self.known)
                if folded is not None:
                    self.known[node.targets[0].id] = folded
        self.visit(tree)
        return self.found

    def add(self, kind: FragmentKind, node: ast.AST, text: str) -> None:
        if text.strip():
            self.found.append(Fragment(kind, self.file, getattr(node, "lineno", 1), text))

    def visit(self, node: ast.AST) -> None:
        folded = _fold(node, self.known)
        if folded is not None and not isinstance(node, ast.Name):
            self.add("string", node, folded)
            for value in node.values if isinstance(node, ast.JoinedStr) else ():
                if isinstance(value, ast.FormattedValue):
                    self.visit(value.value)
            return
        match node:
            case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
                self.add("number", node, str(number))
            case ast.Name(id=name) | ast.FunctionDef(name=name) | ast.arg(arg=name) | ast.Attribute(attr=name):
                self.add("name", node, name)
            case ast.keyword(arg=str(name)):
                self.add("name", node, name)
            case ast.List() | ast.Tuple() | ast.Set() | ast.Dict():
                self._container(node)
            case ast.Compare(left=left, comparators=comparators):
                for side in (left, *comparators):
                    self._compared(side)
        self.generic_visit(node)

    def _container(self, node: ast.List | ast.Tuple | ast.Set | ast.Dict) -> None:
        items = [*(k for k in node.keys if k), *node.values] if isinstance(node, ast.Dict) else node.elts
        strings = [text for item in items if (text := _fold(item, self.known)) is not None]
        if len(strings) > 1:
            self.add("glued", node, "".join(strings))
        numbers = [item.value for item in items if isinstance(item, ast.Constant) and type(item.value) is int]
        if numbers:
            self.add("table", node, " ".join(str(n) for n in numbers if abs(n) >= 10_000))

    def _compared(self, side: ast.expr) -> None:
        items = side.elts if isinstance(side, (ast.List, ast.Tuple, ast.Set)) else [side]
        for item in items:
            folded = _fold(item, self.known)
            if folded is not None:
                self.add("compared", item, folded)


def _fold(node: ast.AST, known: Mapping[str, str]) -> str | None:
    """Return the string that an expression of constants makes, or None. Never runs it."""
    match node:
        case ast.Constant(value=str() as text):
            return text
        case ast.Constant(value=bytes() as raw):
            return raw.decode("utf-8", errors="replace")
        case ast.Name(id=name):
            return known.get(name)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            first, second = _fold(left, known), _fold(right, known)
            return None if first is None or second is None else first + second
        case ast.JoinedStr(values=values):
            return "".join(_fold(v.value if isinstance(v, ast.FormattedValue) else v, known) or " " for v in values)
        case ast.Call(func=ast.Attribute(value=glue, attr="join"), args=[ast.List(elts=items) | ast.Tuple(elts=items)]):
            parts = [_fold(item, known) for item in (glue, *items)]
            if any(part is None for part in parts):
                return None
            joint, *rest = [part or "" for part in parts]
            return joint.join(rest)
        case ast.Call(func=ast.Name(id="chr"), args=[ast.Constant(value=int() as code)]) if 0 <= code < 0x110000:
            return chr(code)
        case ast.Subscript(value=value, slice=ast.Slice(lower=None, upper=None, step=ast.UnaryOp(op=ast.USub()))):
            folded = _fold(value, known)
            return folded[::-1] if folded is not None else None
    return None
