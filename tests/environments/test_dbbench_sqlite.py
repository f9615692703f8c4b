"""The embedded engine reads MySQL's SQL, compares as MySQL does, and reaches nothing outside its memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from evolve.environments.dbbench.engines import TIMED_OUT
from evolve.environments.dbbench.entries import Table
from evolve.environments.dbbench.sqlite import SqliteDatabase, SqliteEngine
from evolve.environments.dbbench.texts import folded, is_like
from evolve.records import ErrorKind

pytest.importorskip("sqlglot", reason="the extra dbbench is not installed")
ROWS = (("9", "a%", "Café"), ("10", "b_b", "CAFE "), ("2001", "", "it's"))
TABLE = Table("A Table", ("No.", "Share in %", "Name"), ROWS)


@pytest.fixture
def database() -> Iterator[SqliteDatabase]:
    opened = SqliteEngine(step_limit=1_000_000).open(TABLE)
    yield opened
    opened.close()


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("SELECT COUNT(*) FROM `A Table` WHERE `No.` < 11", "[(2,)]"),
        ("SELECT COUNT(*) FROM `A Table` WHERE 11 > `No.`", "[(2,)]"),
        ("SELECT COUNT(*) FROM `A Table` WHERE `No.` BETWEEN 9 AND 10", "[(2,)]"),
        ("SELECT COUNT(*) FROM `A Table` WHERE `No.` IN (9, 10)", "[(2,)]"),
        ("SELECT COUNT(*) FROM `A Table` WHERE `No.` = 9.0", "[(1,)]"),
        ("SELECT COUNT(*) FROM `A Table` WHERE REPLACE(`No.`, ',', '') > 100", "[(1,)]"),
        ("SELECT MAX(`No.`) FROM `A Table`", "[('9',)]"),
        ("SELECT `No.` FROM `A Table` ORDER BY `No.` + 0 DESC LIMIT 1", "[('2001',)]"),
        ("SELECT `No.` / 2 FROM `A Table` LIMIT 1", "[(4.5,)]"),
        ("SELECT COUNT(*) FROM `A Table` WHERE Name = 'cafe'", "[(2,)]"),
        ("SELECT COUNT(*) FROM `A Table` WHERE TRIM(Name) = 'cafe'", "[(2,)]"),
        ("SELECT COUNT(DISTINCT Name) FROM `A Table`", "[(2,)]"),
        ("SELECT Name FROM `A Table` WHERE Name LIKE '%É'", "[('Café',), ('CAFE ',)]"),
        (r"SELECT `Share in %` FROM `A Table` WHERE `Share in %` LIKE '%\_%'", "[('b_b',)]"),
        ("SELECT `Share in %` FROM `A Table` WHERE `Share in %` LIKE 'A%' AND Name IS NOT NULL", "[('a%',)]"),
        ("SELECT Name FROM `A Table` WHERE Name = 'it\\'s'", '[("it\'s",)]'),
        ('SELECT Name FROM `A Table` WHERE Name = "it\'s"', '[("it\'s",)]'),
        ("SELECT CONCAT(`No.`, '-', Name), CONCAT('a', NULL) FROM `A Table` LIMIT 1", "[('9-Café', None)]"),
        ("SELECT IF(1 > 2, 'a', 'b'), IFNULL(NULL, 'c'), LEFT('abc', 2), RIGHT('abc', 2)", "[('b', 'c', 'ab', 'bc')]"),
        ("SELECT SUBSTRING_INDEX('a-b-c', '-', 2), SUBSTRING_INDEX('a-b-c', '-', -1)", "[('a-b', 'c')]"),
        ("SELECT CONCAT_WS(',', 'a', NULL, 'b'), MD5('a')", "[('a,b', '0cc175b9c0f1b6a831c399e269772661')]"),
        ("SHOW TABLES", "[('A Table',)]"),
        ("DESCRIBE `A Table`", str([(name, "text", "YES", "", None, "") for name in TABLE.columns])),
        ("SHOW COLUMNS FROM `A Table`", str([(name, "text", "YES", "", None, "") for name in TABLE.columns])),
    ],
)
def test_queries_mean_what_they_mean_in_mysql(database: SqliteDatabase, query: str, shown: str) -> None:
    """Numbers are compared by value, texts without case, accents and trailing spaces; MySQL's functions are there."""
    assert database.run(query).text == shown


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("UPDATE `A Table` SET Name = 'x', `Share in %` = 5 WHERE `No.` = 9", "9,5,x"),
        ('UPDATE `A Table` SET Name = "y" WHERE Name = "CAFÉ" AND `No.` < 10', "9,a%,y"),
        ("UPDATE `A Table` SET `No.` = `No.` + 1 WHERE `No.` = 9", "10,a%,Café"),
        ("UPDATE `A Table` SET Name = NULL WHERE `No.` = '9'", "9,a%"),
        ("BEGIN", "9,a%,Café"),
        ("REPLACE INTO `A Table` VALUES (1, 2, 3)", "9,a%,Café"),
    ],
)
def test_changes_leave_what_mysql_would_leave(database: SqliteDatabase, query: str, rows: str) -> None:
    """Values become texts, NULL is left out of a row, and a statement is committed at once."""
    assert database.run(query).text == "[]"
    assert (database.rows_as_text() or [])[0] == rows


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("DESCRIBE missing", "no such table: missing"),
        ("INSERT INTO `A Table` VALUES (1)", "table A Table has 3 columns but 1 values were supplied"),
        ("SELECT '\ud800'", "'utf-8' codec can't encode character"),
        ("SELECT '\x00'", "null character"),
        ("SELECT " + "(" * 3000 + "1" + ")" * 3000, ""),
        ("SELECT " + "-" * 5 + "1", ""),
        ("SELECT 1 FROM", ""),
        ("SELECT CASE WHEN", ""),
        ("`", ""),
        ("SET @x = 1", ""),
        ("GRANT ALL ON *.* TO x", ""),
    ],
)
def test_whatever_is_written_gets_an_answer(database: SqliteDatabase, query: str, text: str) -> None:
    """What cannot be run is refused in words; the database goes on."""
    reply = database.run(query)
    assert text in reply.text
    assert reply.error_kind in (ErrorKind.REJECTED, None)
    assert database.run("SELECT 1").text == "[(1,)]"


@pytest.mark.parametrize(
    "query",
    [
        "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT SUM(n) FROM c",
        "SELECT COUNT(*) FROM " + ", ".join(f"`A Table` AS t{n}" for n in range(16)),
    ],
)
def test_a_statement_without_end_times_out(database: SqliteDatabase, query: str) -> None:
    """It is stopped after a fixed number of steps, with upstream's text; the table is as it was."""
    reply = database.run(query)
    assert (reply.text, reply.error_kind) == (TIMED_OUT, ErrorKind.TIMEOUT)
    assert TIMED_OUT == "Error: SQL execution timed out."
    assert len(database.rows_as_text() or []) == len(ROWS)


@pytest.mark.parametrize(
    "query",
    [
        "ATTACH DATABASE '{file}' AS other",
        "VACUUM INTO '{file}'",
        "PRAGMA temp_store_directory = '{file}'",
        "PRAGMA journal_mode",
        "SELECT load_extension('{file}')",
        "SELECT readfile('/etc/passwd')",
        "SELECT ZEROBLOB(100000000)",
    ],
)
def test_no_statement_reaches_outside(database: SqliteDatabase, query: str, tmp_path: Path) -> None:
    """No file is read or written, no setting changed, no large memory taken."""
    reply = database.run(query.format(file=tmp_path / "other"))
    assert reply.error_kind is ErrorKind.REJECTED
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("query", ["DROP TABLE `A Table`", "ALTER TABLE `A Table` DROP COLUMN Name"])
def test_a_table_that_is_gone_has_no_rows(database: SqliteDatabase, query: str) -> None:
    """What no longer has its columns cannot be the expected table, and nothing breaks."""
    database.run(query)
    assert database.rows_as_text() is None


def test_names_may_be_anything() -> None:
    """An empty column name, as one dev task has it, and quotes in names are held."""
    names = ("", "a`b", 'c"d')
    database = SqliteEngine().open(Table("x`y", names, (("1", "2", "3"),)))
    assert database.rows_as_text() == ["1,2,3"]
    assert database.run("SELECT `a``b` FROM `x``y`").text == "[('2',)]"


@pytest.mark.parametrize(
    ("pattern", "text", "does"),
    [
        ("%", "", True),
        ("a%b%c", "axxbyyc", True),
        ("a_c", "abc", True),
        ("a_c", "ac", False),
        ("%%a", "ba", True),
        (r"\%", "%", True),
        (r"\%", "x", False),
        ("a\\", "a\\", True),
        ("%ab", "aab", True),
        ("_", "", False),
    ],
)
def test_like_matches_as_mysql(pattern: str, text: str, does: bool) -> None:
    """`%` is any text, `_` one character, a backslash takes the next one as it stands."""
    assert is_like(text, pattern) is does


def test_a_hostile_pattern_takes_bounded_time() -> None:
    """Many `%` do not multiply."""
    assert not is_like("a" * 2000, "%a" * 200 + "b")


def test_folding_ignores_case_accents_and_trailing_spaces() -> None:
    """These are one text to the collation; leading spaces and other letters are not."""
    assert folded("Straße É  ") == folded("STRASSE e")
    assert folded(" a") != folded("a")
