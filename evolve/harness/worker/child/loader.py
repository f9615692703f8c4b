"""Compiles the rule files of a harness, runs what came of it, and collects the rules.

Compiling takes longer than the rest of loading, so it is done once for a harness: what came of it goes to the workers
of the next episodes as text. It is as little trusted as the source is, and like it runs in workers only.

The import list and the missing builtins give clear errors to honest rules. They are no wall: the wall is the sandbox.
"""

import base64
import builtins
import marshal
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from types import CodeType, FunctionType, ModuleType
from typing import Any

from evolve.rules import ALLOWED, Declaration, RuleFunction

FILES = {"action.py": "action", "trajectory.py": "trajectory"}
MISSING = (
    "open",
    "exec",
    "eval",
    "compile",
    "input",
    "breakpoint",
    "globals",
    "locals",
    "vars",
    "help",
    "exit",
    "quit",
)
MAX_MESSAGE = 300
MAX_CODE_CHARS = 900 * 1024


class LoadFault(Exception):
    """A rule file does not load; the message names file and line."""


class Rule:
    """A rule with the memory that it keeps for the episode."""

    __slots__ = ("declaration", "function", "memory")

    def __init__(self, declaration: Declaration, function: RuleFunction) -> None:
        self.declaration = declaration
        self.function = function
        self.memory: dict[str, Any] = {}


def compiled(sources: Mapping[str, str]) -> dict[str, str]:
    """Compile the files and return their code by file name: marshalled, in Base64. Nothing of it is run.

    Returns:
        Nothing where the code is too long or too deep to be passed on: then each worker compiles for itself.

    Raises:
        LoadFault: a file does not compile.
    """
    compiled = {filename: _compiled(filename, source) for filename, source in sources.items()}
    try:
        codes = {filename: base64.b64encode(marshal.dumps(code)).decode() for filename, code in compiled.items()}
    except ValueError:
        return {}
    return codes if sum(map(len, codes.values())) <= MAX_CODE_CHARS else {}


def _compiled(filename: str, source: str) -> CodeType:
    try:
        code: CodeType = compile(source, filename, "exec", dont_inherit=True)
    except Exception as error:
        raise LoadFault(describe(error)) from None
    return code


def _unpacked(code: str) -> CodeType:
    unpacked: CodeType = marshal.loads(base64.b64decode(code))  # noqa: S302 - in here nothing has to be trusted
    return unpacked


def load(codes: Mapping[str, str], sources: Mapping[str, str]) -> dict[str, Rule]:
    """Run the files and return their rules by id, in the order in which they stand.

    Args:
        codes: what `compiled` gave for them.
        sources: those that it gave nothing for.

    Raises:
        LoadFault: a file does not compile, raises, or declares a rule that cannot be.
    """
    files = {name: _unpacked(code) for name, code in codes.items()}
    files |= {name: _compiled(name, source) for name, source in sources.items()}
    rules: dict[str, Rule] = {}
    for filename, layer in FILES.items():
        if filename not in files:
            continue
        for function in _marked(_run_file(filename, files[filename])):
            declaration: Declaration = function.__rule__  # type: ignore[attr-defined]
            place = f"{filename}:{_first_line(function)}"
            if declaration.layer != layer:
                raise LoadFault(f"{place}: {declaration.id!r} is a rule of the {declaration.layer} layer")
            if declaration.id in rules:
                raise LoadFault(f"{place}: the id {declaration.id!r} is used twice")
            rules[declaration.id] = Rule(declaration, function)
    return rules


def forget(filenames: Iterable[str]) -> None:
    """Take the modules of rule files back out of the interpreter."""
    for filename in filenames:
        sys.modules.pop(_module_name(filename), None)


def describe(error: BaseException) -> str:
    """Say what was raised and where in the rule files, in one short line without any path of this machine."""
    if isinstance(error, SyntaxError) and error.filename in FILES:
        return f"{error.filename}:{error.lineno}: {type(error).__name__}: {error.msg}"[:MAX_MESSAGE]
    where = place_of(error)
    text = f"{type(error).__name__}: {_text_of(error)}"[:MAX_MESSAGE]
    return f"{where}: {text}" if where else text


def place_of(error: BaseException) -> str:
    """Return 'file:line' of the innermost frame that is in a rule file, or '' where there is none."""
    place, traceback = "", error.__traceback__
    while traceback is not None:
        filename = traceback.tb_frame.f_code.co_filename
        if filename in FILES:
            place = f"{filename}:{traceback.tb_lineno}"
        traceback = traceback.tb_next
    return place


def _text_of(error: BaseException) -> str:
    try:
        return str(error).encode(errors="replace").decode()
    except Exception:  # an error class of a rule, with a __str__ that raises
        return "no message"


def _run_file(filename: str, code: CodeType) -> dict[str, Any]:
    module = ModuleType(_module_name(filename))
    module.__dict__["__builtins__"] = _rule_builtins()
    sys.modules[module.__name__] = module  # dataclasses look their module up
    try:
        exec(code, module.__dict__)  # noqa: S102 - this process exists to run it, and can do nothing else
    except (Exception, SystemExit) as error:
        raise LoadFault(describe(error)) from None
    return module.__dict__


def _module_name(filename: str) -> str:
    return filename.removesuffix(".py")


def _marked(namespace: dict[str, Any]) -> list[FunctionType]:
    found = {id(f): f for f in namespace.values() if isinstance(getattr(f, "__rule__", None), Declaration)}
    return sorted(found.values(), key=_first_line)


def _first_line(function: Any) -> int:
    return int(function.__code__.co_firstlineno) if isinstance(function, FunctionType) else 0


@cache
def _rule_builtins() -> dict[str, Any]:
    """Return the builtins of all rule files, made in the zygote: a copy would touch each of them after each fork."""
    names = {name: value for name, value in vars(builtins).items() if name not in MISSING}
    names["__import__"] = _import_allowed
    return names


def _import_allowed(name: str, *args: Any, **kwargs: Any) -> ModuleType:
    level = kwargs.get("level", args[3] if len(args) > 3 else 0)
    if level or name not in ALLOWED:
        raise ImportError(f"rules may not import {name!r}; they may import {', '.join(ALLOWED)}")
    return builtins.__import__(name, *args, **kwargs)
