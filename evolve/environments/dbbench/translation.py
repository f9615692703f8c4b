"""Turns a statement of MySQL's SQL into one of SQLite's. What it does not understand it passes on as it stands.

So an error message is always SQLite's own.
"""

from __future__ import annotations

import logging
from typing import Any

from evolve.environments.data import need_module


class Translator:
    """Translates one statement at a time.

    Args:
        collation: how texts are compared where no column says so.

    Raises:
        ConfigError: sqlglot is not installed.
    """

    def __init__(self, collation: str) -> None:
        self._sqlglot: Any = need_module("sqlglot", extra="dbbench")
        self._collation = collation
        self._dialect = _dialect()
        # it warns of what it does not understand; that is SQLite's to say, and to the agent
        logging.getLogger("sqlglot").setLevel(logging.CRITICAL)

    def translate(self, sql: str) -> str:
        """Return the statement for SQLite, or the text unchanged where it is not exactly one that can be read."""
        exp = self._sqlglot.exp
        try:
            trees = self._sqlglot.parse(sql, read="mysql")
            if len(trees) != 1 or trees[0] is None:
                return sql
            listing = _listing(exp, trees[0])
            if listing:
                return listing
            _compare_as_mysql(exp, trees[0], self._collation)
            return str(trees[0].sql(dialect=self._dialect))
        except (self._sqlglot.errors.SqlglotError, RecursionError):
            return sql


def _dialect() -> Any:
    """Return SQLite's dialect with names in backticks: a name in double quotes that is no column would be a text."""
    sqlite = need_module("sqlglot.dialects.sqlite", extra="dbbench").SQLite
    exp = need_module("sqlglot.expressions", extra="dbbench")

    def left(self: Any, tree: Any) -> str:
        return f"SUBSTR({self.sql(tree.this)}, 1, {self.sql(tree.expression)})"

    def right(self: Any, tree: Any) -> str:
        return f"SUBSTR({self.sql(tree.this)}, -({self.sql(tree.expression)}))"

    forms = {**sqlite.Generator.TRANSFORMS, exp.Left: left, exp.Right: right}
    tokenizer = type("Tokenizer", (sqlite.Tokenizer,), {"IDENTIFIERS": ["`"]})
    generator = type("Generator", (sqlite.Generator,), {"TRANSFORMS": forms})
    return type("Embedded", (sqlite,), {"Tokenizer": tokenizer, "Generator": generator})


def _listing(exp: Any, tree: Any) -> str | None:
    """Return the query that answers SHOW TABLES, SHOW COLUMNS FROM t or DESCRIBE t; None for another statement."""
    if isinstance(tree, exp.Show) and tree.name == "TABLES":
        return "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name"
    is_columns = isinstance(tree, exp.Show) and tree.name == "COLUMNS"
    table = tree.args.get("target") if is_columns else tree.this if isinstance(tree, exp.Describe) else None
    if not isinstance(table, exp.Table | exp.Identifier):
        return None
    name = table.name.replace("'", "''")
    known = "`" + table.name.replace("`", "``") + "`"  # read from, so that a table that is not there is an error
    return (
        "SELECT name, LOWER(type), IIF(`notnull`, 'NO', 'YES'), IIF(pk, 'PRI', ''), dflt_value, '' "  # noqa: S608
        f"FROM pragma_table_info('{name}') WHERE (SELECT COUNT(*) FROM {known}) >= 0"
    )


def _compare_as_mysql(exp: Any, tree: Any, collation: str) -> None:
    """Compare with a number by value and with a text by the collation, in place."""
    for node in list(tree.find_all(exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)):
        if isinstance(node.parent, exp.Update) and node.arg_key == "expressions":
            continue  # SET column = value
        for value, other in ((node.left, node.right), (node.right, node.left)):
            if _is_number(exp, value) and not isinstance(other, exp.Literal):
                other.replace(_number_of(exp, other))
            elif isinstance(value, exp.Literal) and value.is_string:
                value.replace(exp.Collate(this=value.copy(), expression=exp.Var(this=collation)))
    for node in list(tree.find_all(exp.Between, exp.In)):
        values = (node.args.get("low"), node.args.get("high")) if isinstance(node, exp.Between) else node.expressions
        if values and all(_is_number(exp, value) for value in values):
            node.this.replace(_number_of(exp, node.this))


def _is_number(exp: Any, node: Any) -> bool:
    node = node.this if isinstance(node, exp.Neg) else node
    return isinstance(node, exp.Literal) and not node.is_string


def _number_of(exp: Any, node: Any) -> Any:
    return exp.Cast(this=node.copy(), to=exp.DataType.build("double"))
