"""What is appended to a user's .gitignore."""

from __future__ import annotations

import pytest

from evolve.repository.gitignore import missing_lines

OURS = b"# ours\n/.evolve/\n.env\n"


@pytest.mark.parametrize(
    ("theirs", "appended"),
    [
        (b"", OURS),
        (b"*.log\n", OURS),
        (b"*.log", b"\n" + OURS),
        (b".env  \n", b"# ours\n/.evolve/\n"),
        (b"*.log\r\n", b"# ours\r\n/.evolve/\r\n.env\r\n"),
        (b".env\r\n/.evolve/", b""),
        (b"\xff\n # .env\n", OURS),
        (b".env\n/.evolve/\n!.env\n", OURS),
        (b"!.env\n/.evolve/\n.env\n", b""),
    ],
    ids=["none", "others", "no last line end", "some", "line ends of Windows", "all", "no UTF-8", "excepted", "again"],
)
def test_only_lines_that_lack_are_appended(theirs: bytes, appended: bytes) -> None:
    """They stand below our comment, in the user's line ends; where none lacks nothing is appended."""
    assert missing_lines(theirs, OURS) == appended
