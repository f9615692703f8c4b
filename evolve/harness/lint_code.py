"""A static look at rule code. Gives clear refusals early; what keeps hostile code in is the worker, not this."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType

from evolve.rules import ALLOWED, STRENGTHS

MAX_LINES = 400
MAX_BYTES = 32 * 1024
LAYERS = {"action.py": "action", "trajectory.py": "trajectory"}
DECORATORS = {"action_rule": "action", "trajectory_rule": "trajectory"}
FORMATTED_DUNDER = re.compile(r"\{[^{}]*\.__")
UNIT_ID = re.compile(r"[a-z][a-z0-9]*(\.[a-z0-9-]+)+")
REFLECTION = frozenset(
    {
        "compile",
        "delattr",
        "dir",
        "eval",
        "exec",
        "globals",
        "hash",
        "id",
        "locals",
        "memoryview",
        "setattr",
        "super",
        "vars",
    }
)
OUTSIDE = frozenset({"breakpoint", "exit", "help", "input", "open", "print", "quit"})
SWALLOWERS = frozenset({"BaseException", "BaseExceptionGroup"})
FORBIDDEN_NAMES = REFLECTION | OUTSIDE | SWALLOWERS
FRAME_ATTRIBUTES = frozenset(
    {"ag_code", "ag_frame", "co_code", "cr_code", "cr_frame", "f_back", "f_builtins", "f_code", "f_globals", "f_locals"}
    | {"gi_code", "gi_frame", "mro", "tb_frame", "tb_next"}
)
FREEZING_CALLS = frozenset({"frozenset", "tuple", "compile", "namedtuple"})
"""What a module-level assignment may call: it gives something that cannot change (`compile` is that of `re`)."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One reason why a rule file is refused."""

    file: str
    line: int
    message: str


def lint_rules(filename: str, source: str) -> list[Finding]:
    """Return the reasons why a rule file is refused, in the order of lines; empty where there are none."""
    size, lines = len(source.encode(errors="replace")), len(source.splitlines())
    if size > MAX_BYTES:
        return [Finding(filename, 1, f"{size} bytes, the most is {MAX_BYTES}")]
    if lines > MAX_LINES:
        return [Finding(filename, MAX_LINES + 1, f"{lines} lines, the most is {MAX_LINES}")]
    try:
        tree = ast.parse(source)
        found = {*_imports(tree), *_constructs(tree), *_module_level(tree), *_rules(filename, tree)}
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return [Finding(filename, getattr(error, "lineno", None) or 1, f"does not parse: {error}")]
    return [Finding(filename, line, message) for line, message in sorted(found)]


def declared_units(source: str) -> list[str]:
    """Return the ids that rule code declares; none where it does not parse."""
    try:
        functions = [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    calls = [call for one in functions for call in one.decorator_list if _decorator_name(call) in DECORATORS]
    given = (word for call in calls if isinstance(call, ast.Call) for word in call.keywords if word.arg == "id")
    return [str(word.value.value) for word in given if isinstance(word.value, ast.Constant)]


Found = Iterator[tuple[int, str]]


def _imports(tree: ast.Module) -> Found:
    modules: dict[str, ModuleType] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name not in ALLOWED:
                    yield node.lineno, f"import of {alias.name!r}; allowed are {', '.join(ALLOWED)}"
                else:
                    bound = alias.name if alias.asname else alias.name.split(".")[0]
                    modules[alias.asname or bound] = importlib.import_module(bound)
        elif isinstance(node, ast.ImportFrom):
            yield from _import_from(node)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules:
            module = modules[node.value.id]
            if not _is_public(module, node.attr):
                yield node.lineno, f"{module.__name__}.{node.attr} is not public"


def _import_from(node: ast.ImportFrom) -> Found:
    if node.level or node.module not in ALLOWED:
        yield node.lineno, f"import from {'.' * node.level}{node.module or ''}; allowed are {', '.join(ALLOWED)}"
        return
    module = importlib.import_module(node.module)
    for alias in node.names:
        if alias.name == "*":
            yield node.lineno, "import of *; name what you need"
        elif not _is_public(module, alias.name):
            yield node.lineno, f"{node.module}.{alias.name} is not public"


def _is_public(module: ModuleType, name: str) -> bool:
    if f"{module.__name__}.{name}" in ALLOWED:
        return True
    if name.startswith("_") or not hasattr(module, name):
        return False
    return not isinstance(getattr(module, name), ModuleType) and name in getattr(module, "__all__", dir(module))


def _constructs(tree: ast.Module) -> Found:
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Load()) if name in FORBIDDEN_NAMES or _is_dunder(name):
                yield node.lineno, f"use of {name}"
            case ast.Call(func=ast.Name(id="getattr"), args=[_, ast.Constant(value=str(name)), *_]) if not _is_dunder(
                name
            ):
                continue
            case ast.Call(func=ast.Name(id="getattr")):
                yield node.lineno, "getattr with a name that is not a plain text"
            case ast.Call(func=ast.Name(id="type"), args=arguments) if len(arguments) != 1:
                yield node.lineno, "type as a maker of classes"
            case ast.Attribute(attr=name) if _is_dunder(name) or name in FRAME_ATTRIBUTES:
                yield node.lineno, f"access to .{name}"
            case ast.Global() | ast.Nonlocal():
                yield node.lineno, "global and nonlocal: keep state in the rule's memory"
            case ast.ClassDef(bases=bases, keywords=keywords) if keywords or not all(map(_is_plain_base, bases)):
                yield node.lineno, f"class {node.name}: no metaclass and no unusual base"
            case ast.AsyncFunctionDef() | ast.Await() | ast.AsyncFor() | ast.AsyncWith():
                yield node.lineno, "rules are plain functions: nothing asynchronous"
            case ast.FunctionDef(name=name) if _is_dunder(name) and name != "__init__":
                yield node.lineno, f"definition of {name}"
            case ast.ExceptHandler(type=None):
                yield node.lineno, "a bare except would swallow the time limit; name what you expect"
            case ast.Constant(value=str(text)) if FORMATTED_DUNDER.search(text):
                yield node.lineno, "a format field that reaches for a dunder attribute"


def _is_dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def _is_plain_base(base: ast.expr) -> bool:
    return isinstance(base, ast.Name) and base.id in {"NamedTuple", "Enum", "StrEnum", "Exception", "ValueError"}


def _module_level(tree: ast.Module) -> Found:
    for position, node in enumerate(tree.body):
        match node:
            case ast.Import() | ast.ImportFrom() | ast.FunctionDef() | ast.ClassDef():
                continue
            case ast.Expr(value=ast.Constant(value=str())) if position == 0:
                continue
            case ast.Assign(value=value) | ast.AnnAssign(value=ast.expr() as value) if _is_constant(value):
                continue
            case ast.Assign() | ast.AnnAssign() | ast.AugAssign():
                yield node.lineno, "module state: only constants, tuples, frozensets and compiled regular expressions"
            case _:
                yield node.lineno, "a statement at module level: only imports, constants, functions and classes"
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            for default in [*function.args.defaults, *[d for d in function.args.kw_defaults if d is not None]]:
                if not _is_constant(default):
                    yield default.lineno, "a default that is no constant is state that outlives the call"


def _is_constant(value: ast.expr) -> bool:
    match value:
        case ast.Constant() | ast.Name():
            return True
        case ast.Tuple(elts=parts):
            return all(map(_is_constant, parts))
        case ast.UnaryOp(operand=operand):
            return _is_constant(operand)
        case ast.BinOp(left=left, right=right):
            return _is_constant(left) and _is_constant(right)
        case ast.JoinedStr(values=values):
            return all(isinstance(v, ast.Constant) or _is_constant(getattr(v, "value", v)) for v in values)
        case ast.Attribute(value=ast.Name(id="re" | "math" | "string")):
            return True
        case ast.Call(func=function, args=arguments, keywords=[]):
            name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
            return name in FREEZING_CALLS and all(_is_constant(a) or _is_display(a) for a in arguments)
    return False


def _is_display(value: ast.expr) -> bool:
    return isinstance(value, ast.Set | ast.List) and all(map(_is_constant, value.elts))


def _rules(filename: str, tree: ast.Module) -> Found:
    layer = LAYERS.get(filename)
    if layer is None:
        yield 1, f"rules stand in {' and '.join(LAYERS)}"
        return
    seen: set[str] = set()
    rules = 0
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            for decorator in node.decorator_list:
                rules += 1
                yield from _rule(node, decorator, layer, seen)
    nested = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.ClassDef) and n not in tree.body]
    for inner in nested:
        if any(_decorator_name(d) in DECORATORS for d in inner.decorator_list):
            yield inner.lineno, f"{inner.name}: rules stand at module level"
    if rules == 0:
        yield 1, f"no rule; a rule is a function marked with @{layer}_rule(id=..., strength=..., evidence=...)"


def _decorator_name(decorator: ast.expr) -> str:
    return decorator.func.id if isinstance(decorator, ast.Call) and isinstance(decorator.func, ast.Name) else ""


def _rule(function: ast.FunctionDef, decorator: ast.expr, layer: str, seen: set[str]) -> Found:
    line, name = decorator.lineno, _decorator_name(decorator)
    if name not in DECORATORS or not isinstance(decorator, ast.Call):
        yield line, f"{function.name}: the only decorator is @{layer}_rule(...)"
        return
    if DECORATORS[name] != layer:
        yield line, f"{function.name}: @{name} does not belong in {layer}.py"
    given = {k.arg: k.value.value for k in decorator.keywords if k.arg and isinstance(k.value, ast.Constant)}
    if (
        decorator.args
        or set(given) != {"id", "strength", "evidence"}
        or not all(isinstance(v, str) for v in given.values())
    ):
        yield line, f"{function.name}: id, strength and evidence are given by name as plain texts"
        return
    unit = str(given["id"])
    if not UNIT_ID.fullmatch(unit) or not unit.startswith(f"{layer}."):
        yield line, f"the id {unit!r} is not of the form {layer}.some-name"
    if unit in seen:
        yield line, f"the id {unit!r} is used twice"
    seen.add(unit)
    if given["strength"] not in STRENGTHS:
        yield line, f"{unit}: strength {given['strength']!r} is none of {', '.join(STRENGTHS)}"
    if not str(given["evidence"]).strip():
        yield line, f"{unit}: evidence is empty; say what the rule rests on"
    arguments = function.args
    if len(arguments.args) != 2 or arguments.vararg or arguments.kwarg or arguments.kwonlyargs or arguments.posonlyargs:
        yield function.lineno, f"{unit}: a rule takes (view, memory)"
