"""Errors to exit codes and to one line; what is printed cannot drive a terminal."""

import errno
import json
import os
import signal
import subprocess
import sys
import time

import pytest

from evolve.cli.app import command
from evolve.cli.exits import exit_code, explain
from evolve.cli.output import show, table, visible
from evolve.errors import BudgetSpent, CanaryFound, ConfigError, HarnessError, Interrupted, ProviderError, StoreError


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConfigError("x"), 2),
        (HarnessError("x"), 2),
        (ProviderError("x"), 4),
        (StoreError("x"), 4),
        (BudgetSpent("x"), 5),
        (CanaryFound("x"), 6),
        (Interrupted("x"), 130),
        (KeyboardInterrupt(), 130),
        (OSError(errno.ENOSPC, "no space"), 4),
        (PermissionError(errno.EACCES, "denied"), 4),
        (FileNotFoundError(errno.ENOENT, "gone"), 1),
        (ValueError("x"), 1),
    ],
)
def test_each_error_has_its_exit_code(error, code):
    """2 is the user's, 4 the world's, 5 a spent budget, 6 a broken seal, 130 an interruption, 1 ours."""
    assert exit_code(error) == code


def test_each_error_is_one_line_that_says_what_to_do():
    """A user error is its message, a full disk says so with the file, a fault of ours says how to report it."""
    assert explain(ConfigError("mend it")) == "mend it"
    assert explain(OSError(errno.ENOSPC, "no space", "/x/ledger")).startswith("/x/ledger: the disk is full")
    assert "EVOLVE_DEBUG=1" in explain(ValueError("odd"))


def test_output_shows_control_characters_instead_of_sending_them():
    """Escapes that a model or a tool wrote reach no terminal."""
    assert visible("a\x1b[31mb\tc\nd\x9b") == "a\\x1b[31mb\tc\nd\\x9b"


def test_result_is_a_document_or_text_never_both(capsys):
    """With --json standard output is one document with a schema version."""
    show({"a": 1}, "text", as_json=True)
    assert capsys.readouterr().out == '{\n  "schema_version": 1,\n  "a": 1\n}\n'
    show({"a": 1}, "text", as_json=False)
    assert capsys.readouterr().out == "text\n"


def test_table_aligns_and_cuts_nothing_off():
    """Numbers stand to the right, words to the left, empty cells are dashes."""
    assert table(("A", "N"), [("x", 1), ("long", None), ("y", 10)]) == "A      N\nx      1\nlong   –\ny     10"


@pytest.mark.parametrize("words", ["env show service_desk --json", "run --help", "--version"])
def test_reader_that_goes_away_is_no_error(words):
    """A pipe whose reader stops early ends quietly with 0."""
    command = f"{sys.executable} -m evolve {words}; echo $? >&2"
    ended = subprocess.run(["bash", "-c", f"({command}) | true"], capture_output=True, text=True, check=False)
    assert ended.stderr.strip() == "0"


def test_ctrl_c_says_a_word_in_any_command():
    """Where no run is under way too: one line, and 130."""
    command = [sys.executable, "-m", "evolve", "selftest", "--runs", "100000"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    time.sleep(2)
    process.send_signal(signal.SIGINT)
    said = process.communicate()[1]
    assert (process.returncode, said.splitlines()[-1]) == (130, "evolve: interrupted; what was recorded is kept")
    assert "Traceback" not in said


def test_a_current_folder_that_is_gone_is_told(workspace, tmp_path):
    """It is no fault of evolve, and the way out is named."""
    command = f"mkdir {tmp_path}/gone && cd {tmp_path}/gone && rmdir ../gone && {sys.executable} -m evolve"
    ended = subprocess.run(["bash", "-c", f"{command} runs list"], capture_output=True, text=True, check=False)
    assert (ended.returncode, "the current folder was deleted" in ended.stderr) == (2, True), ended.stderr
    named = subprocess.run(["bash", "-c", f"{command} runs list -C {workspace}"], check=False)
    assert named.returncode == 0


def test_a_letter_that_standard_output_cannot_hold_is_no_fault(workspace):
    """It is shown as an escape."""
    environ = {**os.environ, "PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "evolve", "config", "show", "-C", workspace, "--set", "model.id=caf\u00e9"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, env=environ)
    assert (ended.returncode, "caf\\xe9" in ended.stdout) == (0, True), ended.stderr
    ended = subprocess.run([*command, "--json"], capture_output=True, text=True, check=True, env=environ)
    assert json.loads(ended.stdout)["values"]["model.id"]["value"] == "caf\u00e9"


def test_a_workspace_whose_path_is_no_text_is_refused(evolve, tmp_path):
    """Ledger and reports hold paths as text."""
    ended = evolve("init", os.fsdecode(os.fsencode(tmp_path) + b"/x\xe9"))
    assert (ended.code, "is not UTF-8" in ended.err) == (2, True), ended.err


def test_help_comes_at_once():
    """`evolve --help` loads nothing that a command would need."""
    heavy = ("numpy", "sqlmodel", "openai", "git", "jinja2", "pydantic", "rich")
    code = (
        "import sys\nfrom evolve.cli.exits import run_command\nrun_command(['--help'])\n"
        f"print([name for name in {heavy!r} if name in sys.modules])"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.splitlines()[-1] == "[]"


def test_version_is_printed(evolve):
    """`--version` prints the version and nothing else."""
    from evolve import __version__

    assert evolve("--version").out == f"{__version__}\n"


def _words(command, *before):
    """Yield the words of each command of the command line."""
    for name, inner in getattr(command, "commands", {}).items():
        yield from _words(inner, *before, name)
    if not hasattr(command, "commands"):
        yield before


@pytest.mark.parametrize("words", list(_words(command())), ids=" ".join)
def test_an_error_of_any_command_is_a_document_too(evolve, words):
    """With --json a command line that is not understood ends with 2 and one document, in the words for people."""
    ended = evolve(*words, "--xyzzy", "--json")
    assert (ended.code, ended.document["schema_version"]) == (2, 1)
    assert ended.document["error"] == {"exit_code": 2, "message": "No such option: --xyzzy"}
    assert ended.err.endswith("Error: No such option: --xyzzy\n")


READ_THE_LEDGER = (
    ("run", "--resume", "--dry-run"),
    ("runs", "list"),
    ("runs", "show"),
    ("candidates", "list"),
    ("candidates", "show", "1"),
    ("candidates", "diff", "1"),
    ("traces", "list"),
    ("traces", "show", "a"),
    ("patterns", "list"),
    ("patterns", "show", "p-1"),
    ("review",),
    ("accept", "1"),
    ("accept", "1", "--dry-run"),
    ("reject", "1"),
    ("freeze", "household", "--name", "v1"),
    ("freeze", "household", "--name", "v1", "--dry-run"),
    ("report",),
)


def test_a_ledger_that_does_not_read_is_told_in_a_document(evolve, played):
    """Each command that needs it ends with 4 and the same words for programs and for people."""
    (played / ".evolve/ledger.sqlite").write_bytes(b"damaged" * 1000)
    for words in READ_THE_LEDGER:
        ended = evolve(*words, "-C", played, "--json")
        assert (ended.code, list(ended.document)) == (4, ["schema_version", "error"]), words
        error = ended.document["error"]
        assert "the file is no SQLite database; restore it from a copy" in error["message"]
        assert (error["exit_code"], ended.err) == (4, f"evolve: {error['message']}\n")
    assert evolve("runs", "list", "-C", played).out == ""


def test_a_result_that_cannot_be_written_is_followed_by_no_document(played):
    """Where standard output is full or closed the exit code and standard error tell."""
    command = [sys.executable, "-m", "evolve", "runs", "show", "nowhere", "--json", "-C", str(played)]
    for closing in (">/dev/full", ">&-"):
        ended = subprocess.run(["bash", "-c", f'"$@" {closing}', "bash", *command], capture_output=True, check=False)
        assert ended.returncode == 2
        assert b"there is no run 'nowhere'" in ended.stderr
