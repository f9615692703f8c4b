"""Guards the tool `calculate`, which evaluates what an agent writes: a tower of powers would never come back."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable

LONGEST = 1000
ALLOWED = frozenset("0123456789+-*/(). ")  # what upstream lets through to the evaluation

_OPERATORS: dict[type, Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Pow: operator.pow,
}


def is_too_large(expression: object) -> bool:
    """Say whether a part of an expression exceeds what a float holds, or it is longer than 1,000 characters.

    Computed in floats, which overflow at once where whole numbers grow without end. What does not read or divides
    by zero is not too large: the tool itself says so.
    """
    if not isinstance(expression, str) or not ALLOWED.issuperset(expression):
        return False
    if len(expression) > LONGEST:
        return True
    try:
        _value(ast.parse(expression, mode="eval").body)
    except OverflowError:
        return True
    except (SyntaxError, ValueError, TypeError, ZeroDivisionError, RecursionError, MemoryError):
        return False
    return False


def _value(node: ast.expr) -> float:
    match node:
        case ast.Constant(value=int() | float() as value):
            return float(value)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return _value(operand)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_value(left), _value(right))
    raise TypeError("no arithmetic")
